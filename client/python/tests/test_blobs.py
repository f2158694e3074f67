"""Files of other programs' caches, as the client sends and reads them."""

import hashlib

import pytest
from fake import message

import attune


def blob(file, data=b"", principal="token:ci"):
    return message(
        "Blob",
        principal=principal,
        namespace="triton",
        key="K",
        file=file,
        data=data,
        bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def test_files_are_got_by_name_in_the_order_asked_for(connect, server):
    server.responses["GetBlobs"] = message("GetBlobsResponse", blobs=[blob("b", b"2"), blob("a", b"1")])
    found = connect(server).get_blobs("triton", "K", ["a", "b"], principals=["self", "token:ci"])
    assert list(found.items()) == [("a", b"1"), ("b", b"2")]
    (request,) = server.asked("GetBlobs")
    assert (request.namespace, request.key, list(request.files)) == ("triton", "K", ["a", "b"])
    assert list(request.principals) == ["self", "token:ci"]


def test_what_did_not_fit_is_asked_for_again_of_the_same_principal(connect, server):
    def answer(request):
        if len(request.files) == 3:
            return message("GetBlobsResponse", blobs=[blob("a", b"1")], left_out=["b", "c"])
        return message("GetBlobsResponse", blobs=[blob("b", b"2"), blob("c", b"3")])

    server.responses["GetBlobs"] = answer
    found = connect(server).get_blobs("triton", "K", ["a", "b", "c"], principals=["self", "token:ci"])
    assert found == {"a": b"1", "b": b"2", "c": b"3"}
    _, again = server.asked("GetBlobs")
    assert (list(again.files), list(again.principals)) == (["b", "c"], ["token:ci"])


def test_what_is_gone_before_it_was_asked_for_again_is_a_miss(connect, server):
    answers = [message("GetBlobsResponse", blobs=[blob("a", b"1")], left_out=["b"]), message("GetBlobsResponse")]
    server.responses["GetBlobs"] = lambda request: answers.pop(0)
    assert connect(server).get_blobs("triton", "K", ["a", "b"]) == {}


def test_data_that_is_not_what_was_put_is_an_error(connect, server):
    damaged = blob("a", b"1")
    damaged.data = b"2"
    server.responses["GetBlobs"] = message("GetBlobsResponse", blobs=[damaged])
    with pytest.raises(attune.DataLoss, match="blob 'a' under 'K' is not what token:ci has put"):
        connect(server).get_blobs("triton", "K", ["a"])


def test_a_file_is_put_with_its_names(connect, server):
    server.responses["PutBlob"] = blob("k.cubin")
    put = connect(server).put_blob("triton", "K", "k.cubin", b"\x7fELF", shared=True)
    assert (put.principal, put.file) == ("token:ci", "k.cubin")
    (request,) = server.asked("PutBlob")
    assert (request.namespace, request.key, request.file) == ("triton", "K", "k.cubin")
    assert (request.data, request.shared) == (b"\x7fELF", True)


def test_what_no_server_takes_is_not_sent(connect, server):
    client = connect(server)
    with pytest.raises(attune.InvalidArgument, match="data has 4128769 bytes; allowed: at most 4128768"):
        client.put_blob("triton", "K", "f", bytes((4 << 20) - (64 << 10) + 1))
    with pytest.raises(attune.InvalidArgument, match="data is a str; it must be bytes"):
        client.put_blob("triton", "K", "f", "text")
    with pytest.raises(attune.InvalidArgument, match="files is 'f'; it must be a sequence"):
        client.get_blobs("triton", "K", "f")
    assert server.requests == []


def test_files_are_listed_page_by_page_and_deleted(connect, server):
    def answer(request):
        if request.page_token:
            return message("ListBlobsResponse", blobs=[blob("b")])
        return message("ListBlobsResponse", blobs=[blob("a")], next_page_token="more")

    server.responses["ListBlobs"] = answer
    server.responses["DeleteBlobs"] = message("DeleteBlobsResponse", blobs=12, bytes=99)
    client = connect(server)
    assert [one.file for one in client.blobs(namespace="triton", principal="self")] == ["a", "b"]
    assert server.asked("ListBlobs")[1].principal == "self"
    assert client.delete_blobs(namespace="triton", key="K") == 12
    (request,) = server.asked("DeleteBlobs")
    assert (request.principal, request.namespace, request.key) == ("self", "triton", "K")
