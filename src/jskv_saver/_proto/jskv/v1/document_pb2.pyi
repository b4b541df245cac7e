from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Null(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NULL_UNSPECIFIED: _ClassVar[Null]
NULL_UNSPECIFIED: Null

class Value(_message.Message):
    __slots__ = ("null_value", "string_value", "int_value", "double_value", "bool_value", "bytes_value", "datetime_value", "list_value", "object_value")
    NULL_VALUE_FIELD_NUMBER: _ClassVar[int]
    STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
    INT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_VALUE_FIELD_NUMBER: _ClassVar[int]
    BOOL_VALUE_FIELD_NUMBER: _ClassVar[int]
    BYTES_VALUE_FIELD_NUMBER: _ClassVar[int]
    DATETIME_VALUE_FIELD_NUMBER: _ClassVar[int]
    LIST_VALUE_FIELD_NUMBER: _ClassVar[int]
    OBJECT_VALUE_FIELD_NUMBER: _ClassVar[int]
    null_value: Null
    string_value: str
    int_value: int
    double_value: float
    bool_value: bool
    bytes_value: bytes
    datetime_value: int
    list_value: List
    object_value: Object
    def __init__(self, null_value: _Optional[_Union[Null, str]] = ..., string_value: _Optional[str] = ..., int_value: _Optional[int] = ..., double_value: _Optional[float] = ..., bool_value: _Optional[bool] = ..., bytes_value: _Optional[bytes] = ..., datetime_value: _Optional[int] = ..., list_value: _Optional[_Union[List, _Mapping]] = ..., object_value: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class List(_message.Message):
    __slots__ = ("values",)
    VALUES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Object(_message.Message):
    __slots__ = ("keys", "values")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    values: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, keys: _Optional[_Iterable[str]] = ..., values: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class Path(_message.Message):
    __slots__ = ("segments",)
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, segments: _Optional[_Iterable[str]] = ...) -> None: ...

class Pattern(_message.Message):
    __slots__ = ("segments", "any")
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    ANY_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedScalarFieldContainer[str]
    any: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, segments: _Optional[_Iterable[str]] = ..., any: _Optional[_Iterable[int]] = ...) -> None: ...

class Within(_message.Message):
    __slots__ = ("prefixes",)
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    prefixes: _containers.RepeatedCompositeFieldContainer[Pattern]
    def __init__(self, prefixes: _Optional[_Iterable[_Union[Pattern, _Mapping]]] = ...) -> None: ...

class Stamp(_message.Message):
    __slots__ = ("version", "created", "updated")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    UPDATED_FIELD_NUMBER: _ClassVar[int]
    version: int
    created: int
    updated: int
    def __init__(self, version: _Optional[int] = ..., created: _Optional[int] = ..., updated: _Optional[int] = ...) -> None: ...

class Document(_message.Message):
    __slots__ = ("id", "data", "stamp")
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    STAMP_FIELD_NUMBER: _ClassVar[int]
    id: _containers.RepeatedScalarFieldContainer[str]
    data: Object
    stamp: Stamp
    def __init__(self, id: _Optional[_Iterable[str]] = ..., data: _Optional[_Union[Object, _Mapping]] = ..., stamp: _Optional[_Union[Stamp, _Mapping]] = ...) -> None: ...

class Fence(_message.Message):
    __slots__ = ("prefix", "version")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    prefix: Path
    version: int
    def __init__(self, prefix: _Optional[_Union[Path, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class FieldSpec(_message.Message):
    __slots__ = ("name", "type", "indexed", "unique")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    INDEXED_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    indexed: bool
    unique: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., indexed: _Optional[bool] = ..., unique: _Optional[bool] = ...) -> None: ...

class UniqueGroup(_message.Message):
    __slots__ = ("fields",)
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    fields: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, fields: _Optional[_Iterable[str]] = ...) -> None: ...

class CollectionSpec(_message.Message):
    __slots__ = ("name", "fields", "unique_together")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_TOGETHER_FIELD_NUMBER: _ClassVar[int]
    name: str
    fields: _containers.RepeatedCompositeFieldContainer[FieldSpec]
    unique_together: _containers.RepeatedCompositeFieldContainer[UniqueGroup]
    def __init__(self, name: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[FieldSpec, _Mapping]]] = ..., unique_together: _Optional[_Iterable[_Union[UniqueGroup, _Mapping]]] = ...) -> None: ...

class Predicate(_message.Message):
    __slots__ = ("field", "operator", "value")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    operator: str
    value: Value
    def __init__(self, field: _Optional[str] = ..., operator: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Order(_message.Message):
    __slots__ = ("field", "direction")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    field: str
    direction: str
    def __init__(self, field: _Optional[str] = ..., direction: _Optional[str] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ("code", "message", "detail")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    detail: Object
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., detail: _Optional[_Union[Object, _Mapping]] = ...) -> None: ...

class LimitsRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class LimitsReply(_message.Message):
    __slots__ = ("data", "version")
    DATA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    data: int
    version: str
    def __init__(self, data: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...

class EnsureCollectionRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "spec")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    spec: CollectionSpec
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., spec: _Optional[_Union[CollectionSpec, _Mapping]] = ...) -> None: ...

class EnsureCollectionReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DropCollectionRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    name: str
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., name: _Optional[str] = ...) -> None: ...

class DropCollectionReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CollectionsRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class CollectionsReply(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class PutRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collection", "id", "data", "if_version", "if_latest")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_LATEST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collection: str
    id: _containers.RepeatedScalarFieldContainer[str]
    data: Object
    if_version: int
    if_latest: Fence
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collection: _Optional[str] = ..., id: _Optional[_Iterable[str]] = ..., data: _Optional[_Union[Object, _Mapping]] = ..., if_version: _Optional[int] = ..., if_latest: _Optional[_Union[Fence, _Mapping]] = ...) -> None: ...

class PutReply(_message.Message):
    __slots__ = ("stamp",)
    STAMP_FIELD_NUMBER: _ClassVar[int]
    stamp: Stamp
    def __init__(self, stamp: _Optional[_Union[Stamp, _Mapping]] = ...) -> None: ...

class PutExpiringRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collection", "id", "data", "if_version", "ttl_ms")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collection: str
    id: _containers.RepeatedScalarFieldContainer[str]
    data: Object
    if_version: int
    ttl_ms: int
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collection: _Optional[str] = ..., id: _Optional[_Iterable[str]] = ..., data: _Optional[_Union[Object, _Mapping]] = ..., if_version: _Optional[int] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class PutExpiringReply(_message.Message):
    __slots__ = ("stamp",)
    STAMP_FIELD_NUMBER: _ClassVar[int]
    stamp: Stamp
    def __init__(self, stamp: _Optional[_Union[Stamp, _Mapping]] = ...) -> None: ...

class Write(_message.Message):
    __slots__ = ("collection", "id", "data", "if_version", "if_latest")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    IF_LATEST_FIELD_NUMBER: _ClassVar[int]
    collection: str
    id: _containers.RepeatedScalarFieldContainer[str]
    data: Object
    if_version: int
    if_latest: Fence
    def __init__(self, collection: _Optional[str] = ..., id: _Optional[_Iterable[str]] = ..., data: _Optional[_Union[Object, _Mapping]] = ..., if_version: _Optional[int] = ..., if_latest: _Optional[_Union[Fence, _Mapping]] = ...) -> None: ...

class PutManyRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "writes", "exact")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    writes: _containers.RepeatedCompositeFieldContainer[Write]
    exact: bool
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., writes: _Optional[_Iterable[_Union[Write, _Mapping]]] = ..., exact: _Optional[bool] = ...) -> None: ...

class PutManyReply(_message.Message):
    __slots__ = ("stamps",)
    STAMPS_FIELD_NUMBER: _ClassVar[int]
    stamps: _containers.RepeatedCompositeFieldContainer[Stamp]
    def __init__(self, stamps: _Optional[_Iterable[_Union[Stamp, _Mapping]]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collection", "id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collection: str
    id: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collection: _Optional[str] = ..., id: _Optional[_Iterable[str]] = ...) -> None: ...

class GetReply(_message.Message):
    __slots__ = ("document",)
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    document: Document
    def __init__(self, document: _Optional[_Union[Document, _Mapping]] = ...) -> None: ...

class Read(_message.Message):
    __slots__ = ("collection", "id")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    collection: str
    id: Pattern
    def __init__(self, collection: _Optional[str] = ..., id: _Optional[_Union[Pattern, _Mapping]] = ...) -> None: ...

class GetManyRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "reads")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    reads: _containers.RepeatedCompositeFieldContainer[Read]
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., reads: _Optional[_Iterable[_Union[Read, _Mapping]]] = ...) -> None: ...

class Found(_message.Message):
    __slots__ = ("collection", "document")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    collection: str
    document: Document
    def __init__(self, collection: _Optional[str] = ..., document: _Optional[_Union[Document, _Mapping]] = ...) -> None: ...

class Left(_message.Message):
    __slots__ = ("collection", "id", "size")
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    collection: str
    id: _containers.RepeatedScalarFieldContainer[str]
    size: int
    def __init__(self, collection: _Optional[str] = ..., id: _Optional[_Iterable[str]] = ..., size: _Optional[int] = ...) -> None: ...

class GetManyReply(_message.Message):
    __slots__ = ("found", "left")
    FOUND_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    found: _containers.RepeatedCompositeFieldContainer[Found]
    left: _containers.RepeatedCompositeFieldContainer[Left]
    def __init__(self, found: _Optional[_Iterable[_Union[Found, _Mapping]]] = ..., left: _Optional[_Iterable[_Union[Left, _Mapping]]] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collections", "id", "if_version", "subtree", "below")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTIONS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    IF_VERSION_FIELD_NUMBER: _ClassVar[int]
    SUBTREE_FIELD_NUMBER: _ClassVar[int]
    BELOW_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collections: _containers.RepeatedScalarFieldContainer[str]
    id: Pattern
    if_version: int
    subtree: bool
    below: int
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collections: _Optional[_Iterable[str]] = ..., id: _Optional[_Union[Pattern, _Mapping]] = ..., if_version: _Optional[int] = ..., subtree: _Optional[bool] = ..., below: _Optional[int] = ...) -> None: ...

class DeleteReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collection", "where", "order_by", "limit", "cursor", "within")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collection: str
    where: _containers.RepeatedCompositeFieldContainer[Predicate]
    order_by: Order
    limit: int
    cursor: str
    within: Within
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collection: _Optional[str] = ..., where: _Optional[_Iterable[_Union[Predicate, _Mapping]]] = ..., order_by: _Optional[_Union[Order, _Mapping]] = ..., limit: _Optional[int] = ..., cursor: _Optional[str] = ..., within: _Optional[_Union[Within, _Mapping]] = ...) -> None: ...

class FindReply(_message.Message):
    __slots__ = ("items", "cursor")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Document]
    cursor: str
    def __init__(self, items: _Optional[_Iterable[_Union[Document, _Mapping]]] = ..., cursor: _Optional[str] = ...) -> None: ...

class CountRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collection", "where", "within")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collection: str
    where: _containers.RepeatedCompositeFieldContainer[Predicate]
    within: Within
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collection: _Optional[str] = ..., where: _Optional[_Iterable[_Union[Predicate, _Mapping]]] = ..., within: _Optional[_Union[Within, _Mapping]] = ...) -> None: ...

class CountReply(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class DeleteManyRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collection", "where", "within")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    WHERE_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collection: str
    where: _containers.RepeatedCompositeFieldContainer[Predicate]
    within: Within
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collection: _Optional[str] = ..., where: _Optional[_Iterable[_Union[Predicate, _Mapping]]] = ..., within: _Optional[_Union[Within, _Mapping]] = ...) -> None: ...

class DeleteManyReply(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class IdsRequest(_message.Message):
    __slots__ = ("namespace", "timeout_ms", "collection", "within", "after")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    COLLECTION_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    timeout_ms: int
    collection: str
    within: Within
    after: Path
    def __init__(self, namespace: _Optional[str] = ..., timeout_ms: _Optional[int] = ..., collection: _Optional[str] = ..., within: _Optional[_Union[Within, _Mapping]] = ..., after: _Optional[_Union[Path, _Mapping]] = ...) -> None: ...

class IdsReply(_message.Message):
    __slots__ = ("ids", "more")
    IDS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedCompositeFieldContainer[Path]
    more: bool
    def __init__(self, ids: _Optional[_Iterable[_Union[Path, _Mapping]]] = ..., more: _Optional[bool] = ...) -> None: ...
