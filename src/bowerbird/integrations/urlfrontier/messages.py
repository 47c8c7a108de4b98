"""The messages and calls of the URLFrontier interface, version 2.6, as a table; classes are made from it at import.

Names, numbers and types are the interface's (package `urlfrontier`, proto3). Made here they need no generated code and
no compiler, only the protobuf runtime. A test compiles the interface with protoc and compares.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "urlfrontier"
SERVICE = f"{PACKAGE}.URLFrontier"

#: message -> its fields: "[repeated|optional] type name number", in a oneof "name: type name number"
_MESSAGES: dict[str, tuple[str, ...]] = {
    "Empty": (),
    "AnyCrawlID": (),
    "Local": ("bool local 1",),
    "Active": ("bool state 1", "bool local 2"),
    "Boolean": ("bool state 1",),
    "Long": ("uint64 value 1",),
    "StringList": ("repeated string values 1",),
    "DeleteCrawlMessage": ("string value 1", "bool local 2"),
    "Stats": (
        "uint64 size 1",
        "uint32 inProcess 2",
        "map<uint64> counts 3",
        "uint64 numberOfQueues 4",
        "string crawlID 5",
    ),
    "Pagination": (
        "uint32 start 1",
        "uint32 size 2",
        "bool include_inactive 3",
        "string crawlID 4",
        "bool local 5",
    ),
    "QueueList": ("repeated string values 1", "uint64 total 2", "uint32 start 3", "uint32 size 4", "string crawlID 5"),
    "QueueWithinCrawlParams": ("string key 1", "string crawlID 2", "bool local 3"),
    "QueueDelayParams": ("string key 1", "uint32 delay_requestable 2", "string crawlID 3", "bool local 4"),
    "BlockQueueParams": ("string key 1", "uint64 time 2", "string crawlID 3", "bool local 4"),
    "GetParams": (
        "uint32 max_urls_per_queue 1",
        "uint32 max_queues 2",
        "string key 3",
        "uint32 delay_requestable 4",
        "item: AnyCrawlID anyCrawlID 5",
        "item: string crawlID 6",
    ),
    "URLInfo": ("string url 1", "string key 2", "map<StringList> metadata 3", "string crawlID 4"),
    "DiscoveredURLItem": ("URLInfo info 1",),
    "KnownURLItem": ("URLInfo info 1", "uint64 refetchable_from_date 2"),
    "URLItem": (
        "item: DiscoveredURLItem discovered 1",
        "item: KnownURLItem known 2",
        "string ID 3",
        "uint64 creation_date 4",
    ),
    "AckMessage": ("string ID 1", "AckMessage.Status status 2"),
    "DiscoveredBatch": ("string ID 1", "repeated URLInfo items 2"),
    "BatchAck": ("string ID 1", "repeated AckMessage.Status statuses 2"),
    "LogLevelParams": ("string package 1", "LogLevelParams.Level level 2", "bool local 3"),
    "CrawlLimitParams": ("string key 1", "uint32 limit 2", "string crawlID 3", "bool local 4"),
    "URLStatusRequest": ("string url 1", "string key 2", "string crawlID 3"),
    "ListUrlParams": (
        "uint32 start 1",
        "uint32 size 2",
        "string key 3",
        "string crawlID 4",
        "bool local 5",
        "optional string filter 6",
        "optional bool ignoreCase 7",
    ),
    "CountUrlParams": (
        "string key 1",
        "string crawlID 2",
        "optional string filter 3",
        "optional bool ignoreCase 4",
        "optional bool local 5",
    ),
    "PurgeUrlParams": ("string key 1", "string crawlID 2", "uint32 days 3"),
}
#: enumeration -> its values, numbered from 0
_ENUMS: dict[str, tuple[str, ...]] = {
    "AckMessage.Status": ("OK", "SKIPPED", "FAIL"),
    "LogLevelParams.Level": ("TRACE", "DEBUG", "INFO", "WARN", "ERROR"),
}


class Call(NamedTuple):
    """One rpc: what goes in and comes out, and which of them are streams."""

    request: str
    response: str
    streams_in: bool = False
    streams_out: bool = False


CALLS: dict[str, Call] = {
    "ListNodes": Call("Empty", "StringList"),
    "ListCrawls": Call("Local", "StringList"),
    "DeleteCrawl": Call("DeleteCrawlMessage", "Long"),
    "ListQueues": Call("Pagination", "QueueList"),
    "GetURLs": Call("GetParams", "URLInfo", streams_out=True),
    "PutURLs": Call("URLItem", "AckMessage", streams_in=True, streams_out=True),
    "PutDiscovered": Call("DiscoveredBatch", "BatchAck", streams_in=True, streams_out=True),
    "GetStats": Call("QueueWithinCrawlParams", "Stats"),
    "DeleteQueue": Call("QueueWithinCrawlParams", "Long"),
    "BlockQueueUntil": Call("BlockQueueParams", "Empty"),
    "SetDelay": Call("QueueDelayParams", "Empty"),
    "SetActive": Call("Active", "Empty"),
    "GetActive": Call("Local", "Boolean"),
    "SetLogLevel": Call("LogLevelParams", "Empty"),
    "SetCrawlLimit": Call("CrawlLimitParams", "Empty"),
    "GetURLStatus": Call("URLStatusRequest", "URLItem"),
    "ListURLs": Call("ListUrlParams", "URLItem", streams_out=True),
    "CountURLs": Call("CountUrlParams", "Long"),
    "PurgeURLs": Call("PurgeUrlParams", "Long"),
}

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bool": _Field.TYPE_BOOL,
    "uint32": _Field.TYPE_UINT32,
    "uint64": _Field.TYPE_UINT64,
}


def describe() -> descriptor_pb2.FileDescriptorProto:
    """The interface as protoc would describe it."""
    file = descriptor_pb2.FileDescriptorProto(name="bowerbird/urlfrontier.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields:
            _add_field(message, text)
        for place, field in enumerate(message.field):
            if field.proto3_optional:  # protoc makes a oneof of each
                message.field[place].oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")
    for name, values in _ENUMS.items():
        owner, _, short = name.partition(".")
        message = next(one for one in file.message_type if one.name == owner)
        enum = message.enum_type.add(name=short)
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    service = file.service.add(name=SERVICE.removeprefix(f"{PACKAGE}."))
    for name, call in CALLS.items():
        service.method.add(
            name=name,
            input_type=f".{PACKAGE}.{call.request}",
            output_type=f".{PACKAGE}.{call.response}",
            client_streaming=call.streams_in,
            server_streaming=call.streams_out,
        )
    return file


def _add_field(message: Any, text: str) -> None:
    choice, colon, rest = text.rpartition(": ")
    *label, kind, name, number = rest.split()
    field = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
    if colon:
        if choice not in [one.name for one in message.oneof_decl]:
            message.oneof_decl.add(name=choice)
        field.oneof_index = len(message.oneof_decl) - 1
    if label:
        field.proto3_optional = label == ["optional"]
        field.label = _Field.LABEL_REPEATED if label == ["repeated"] else _Field.LABEL_OPTIONAL
    if kind.startswith("map<"):
        entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        _add_field(entry, "string key 1")
        _add_field(entry, f"{kind[4:-1]} value 2")
        field.label, field.type = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{message.name}.{entry.name}"
    elif kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _Field.TYPE_ENUM if kind in _ENUMS else _Field.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{kind}"


def _make_classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.Add(describe())
    found = pool.FindFileByName("bowerbird/urlfrontier.proto")
    return {name: message_factory.GetMessageClass(found.message_types_by_name[name]) for name in _MESSAGES}


#: message name -> its class
CLASSES: dict[str, Any] = _make_classes()
