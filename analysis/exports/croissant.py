"""Metadata in Croissant's JSON-LD (MLCommons, version 1.1), from which tools load the tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.exports.card import citation
from analysis.exports.columns import Kind
from analysis.exports.facts import Facts

if TYPE_CHECKING:
    from analysis.exports.dataset import Table

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"
DATA_TYPES = {
    Kind.TEXT: "sc:Text",
    Kind.WORD: "sc:Text",
    Kind.INTEGER: "sc:Integer",
    Kind.NUMBER: "sc:Float",
    Kind.BOOLEAN: "sc:Boolean",
    Kind.FLAG: "sc:Boolean",
}

#: The context that the specification prescribes.
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(tables: Sequence["Table"], facts: Facts) -> dict:
    """The metadata of a dataset folder, as JSON."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": facts.title,
        "description": facts.description,
        "license": facts.license,
        "citeAs": citation(facts),
        "datePublished": facts.made_on.isoformat(),
        "version": "1.0.0",
        "inLanguage": "en",
        **_classifier(facts),
        "keywords": ["hate speech detection", "human validation", "machine-generated text", "not for all audiences"],
        "distribution": [_file(table) for table in tables],
        "recordSet": [_records(table) for table in tables],
    }


def _classifier(facts: Facts) -> dict:
    """What labelled the statements in place of people, as the vocabulary for responsible use has it."""
    return {"rai:machineAnnotationTools": facts.propagated.sentences} if facts.propagated else {}


def _file(table: "Table") -> dict:
    return {
        "@type": "cr:FileObject",
        "@id": table.path,
        "name": table.path,
        "description": f"{table.export.about} {table.rows} rows.",
        "contentUrl": table.path,
        "contentSize": f"{table.size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": table.sha256,
    }


def _records(table: "Table") -> dict:
    return {
        "@type": "cr:RecordSet",
        "@id": table.name,
        "name": table.name,
        "description": table.export.about,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{table.name}/{column.name.rstrip('?')}",
                "name": f"{table.name}/{column.name}",
                "description": column.meaning,
                "dataType": DATA_TYPES[column.kind],
                "source": {"fileObject": {"@id": table.path}, "extract": {"column": column.name}},
            }
            for column in table.columns
        ],
    }
