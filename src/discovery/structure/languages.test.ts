/** Tests the imports of Python, Go and Rust: what is read, where it leads, and that a rule finds a planted violation of each. */

import { describe, expect, test } from 'bun:test'
import { processorMs } from '../../../test/support/processor-ms.ts'
import { describeViolation, filesOf, violationsOf } from './judge.ts'
import { type Files, projectOf, rulesOf, ui } from './project.fixture.ts'
import { createImportReader } from './read-imports.ts'

const read = createImportReader()
const list = (path: string, text: string) => read(path, text).imports.map(({ specifier, line }) => `${line} ${specifier}`)
const targets = (files: Files, path: string) =>
  projectOf(files)
    .facts(path)
    ?.channels.map(({ target }) => target)
const found = (toml: string, files: Files) => {
  const project = projectOf(files)
  return violationsOf(rulesOf(toml), project, filesOf(project).files).map(describeViolation)
}

describe('a rule finds a planted violation', () => {
  const says = (path: string, specifier: string, target: string) => [
    `${path} imports "${specifier}" (${target}), but may not import database (rule "ui-without-database")`,
  ]

  test('in Python', () => {
    const files = {
      'src/db/__init__.py': '',
      'src/db/orders.py': '',
      'src/ui/cart.py': '"""import db"""\nimport os\nfrom db.orders import read\n',
    }
    expect(found(ui, files)).toEqual(says('src/ui/cart.py:3', 'db.orders:read', 'src/db/orders.py'))
  })

  test('in Go', () => {
    const files = {
      'go.mod': 'module example.org/shop // ours\n\ngo 1.22\n',
      'src/db/orders_test.go': '',
      'src/db/orders.go': 'package db',
      'src/ui/cart.go': 'package ui\n\nimport (\n\t"fmt"\n\t// "example.org/shop/no"\n\td "example.org/shop/src/db"\n)\n',
    }
    expect(found(ui, files)).toEqual(says('src/ui/cart.go:6', 'example.org/shop/src/db', 'src/db/orders.go'))
  })

  test('in Rust', () => {
    const files = {
      'Cargo.toml': '',
      'src/lib.rs': 'mod db;\nmod ui;',
      'src/db/mod.rs': '',
      'src/ui/mod.rs': '//! use crate::db;\nuse crate::db::{read, Order as O};',
    }
    expect(found(ui, files)).toEqual([
      ...says('src/ui/mod.rs:2', 'crate::db::read', 'src/db/mod.rs'),
      ...says('src/ui/mod.rs:2', 'crate::db::Order', 'src/db/mod.rs'),
    ])
  })

  test('of a package, of a name that is known only at run time, and of a cycle', () => {
    const toml = ui
      .replace('package:pg', 'package:psycopg')
      .replace('"src/db/", ', '"src/db/", "package:github.com/lib/**", "package:sqlx", "computed:", ')
    const files = {
      'src/ui/a.py': 'import psycopg.pool',
      'src/ui/b.go': 'package ui\nimport "github.com/lib/pq"',
      'src/ui/c.rs': 'use sqlx::Pool;',
      'src/ui/d.py': 'import importlib\nimportlib.import_module(name)',
    }
    expect(found(toml, files)).toHaveLength(4)
    const circle = { 'a/__init__.py': '', 'a/x.py': 'from . import y', 'a/y.py': 'if 1: from a.x import z' }
    expect(found('[rules.no-cycles]\nno_cycles = true', circle)).toEqual([expect.stringContaining('a/x.py → a/y.py → a/x.py')])
  })
})

describe('Python', () => {
  test('imports of every form, and none in texts and comments', () => {
    const text = [
      'import a.b as c, d # import no',
      'from .x import (y, # import no',
      '  z as w)',
      "s = 'import no'; from ..q import *",
      "t = f'''",
      'import no',
      "''' + r'\\\\'; import e",
      'from f \\',
      '  import g',
      '  def h(): import i',
      'important = from_x = "x"',
    ].join('\n')
    expect(list('a.py', text)).toEqual(['1 a.b', '1 d', '2 .x:y', '2 .x:z', '4 ..q', '7 e', '8 f:g', '10 i'])
  })

  test('modules, members and packages lead to their files', () => {
    const files = { 'p/__init__.py': '', 'p/q.py': '', 'p/r/__init__.py': '', 'src/m.py': '', 'n/s.py': '' }
    const lead = (text: string, path = 'p/a.py') => targets({ ...files, [path]: text }, path)
    expect(lead('import p.q, p.r, os.path, m, p')).toEqual(['p/q.py', 'p/r/__init__.py', 'package:os', 'src/m.py', 'p/__init__.py'])
    expect(lead('from p import q, r, VALUE')).toEqual(['p/q.py', 'p/r/__init__.py', 'p/__init__.py'])
    expect(lead('from . import q\nfrom .r import x\nfrom .later import x\nimport p.later')).toEqual([
      'p/q.py',
      'p/r/__init__.py',
      'p/later.py',
      'p/later.py',
    ])
    expect(lead('from ..q import x\nfrom .. import r', 'p/r/a.py')).toEqual(['p/q.py', 'p/r/__init__.py'])
    expect(lead('import s', 'n/a.py')).toEqual(['n/s.py'])
  })
})

describe('Go', () => {
  test('imports stand in the head of a file', () => {
    const text =
      'package a // x\n/* import "no" */\nimport "one"; import . `two`\nimport (\n\t_ "three" // four\n)\nvar x = "no"\nimport "no"'
    expect(list('a.go', text)).toEqual(['3 one', '3 two', '5 three'])
  })

  test('the nearest go.mod counts, and the standard library is a package', () => {
    const files = { 'go.mod': 'module "x.org/a"', 'tool/go.mod': 'module x.org/tool', 'tool/b/b.go': '', 'c/c.go': '' }
    const text = 'package a\nimport ("net/http"; "x.org/tool/b"; "x.org/a/c"; "x.org/ab"; "x.org/a/later")'
    expect(targets({ ...files, 'tool/a.go': text }, 'tool/a.go')?.slice(0, 3)).toEqual([
      'package:net/http',
      'tool/b/b.go',
      'package:x.org/a/c',
    ])
    expect(targets({ ...files, 'a.go': text }, 'a.go')?.slice(2)).toEqual(['c/c.go', 'package:x.org/ab', 'later/later.go'])
  })
})

describe('Rust', () => {
  test('modules and uses, and none in texts and comments', () => {
    const text = [
      'use a::{b, c::{self, d as e}}; pub(crate) mod f;',
      '/* use no; /* use no; */ use no; */',
      'let s = "use no;"; let r = r#"use no;"#; let c = \'"\';',
      "fn g<'a>() { use self::h::*; }",
      'mod tests {',
      '  use super::*; use super::super::i; mod j;',
      '}',
      'extern crate k;',
    ].join('\n')
    expect(list('a.rs', text)).toEqual(['1 a::b', '1 a::c', '1 a::c::d', '1 self::f', '4 self::h', '6 super::i', '6 self::tests::j', '8 k'])
  })

  test('paths lead as deep as there are files', () => {
    const files = { 'Cargo.toml': '', 'src/main.rs': '', 'src/a.rs': '', 'src/a/b.rs': '', 'src/c/mod.rs': '' }
    const lead = (text: string, path = 'src/a.rs') => targets({ ...files, [path]: text }, path)
    expect(lead('use crate::a::b::X; use crate::run; use crate::Config; use crate::later::X; mod b; mod later;')).toEqual([
      'src/a/b.rs',
      'src/main.rs',
      'src/main.rs',
      'src/later.rs',
      'src/a/b.rs',
      'src/a/later.rs',
    ])
    expect(lead('use super::c::Y; use b::X; use std::fmt; use self::b::X')).toEqual([
      'src/c/mod.rs',
      'src/a/b.rs',
      'package:std',
      'src/a/b.rs',
    ])
    expect(lead('use super::X; use super::super::c', 'src/a/b.rs')).toEqual(['src/a.rs', 'src/c/mod.rs'])
  })
})

test('a long file of half imports takes no second', () => {
  const begun = processorMs()
  for (const [path, halves] of [
    ['a.py', ['from a import (', 'import a\n', '"""', "'", ': ', 'from . ', '\\\n']],
    ['a.go', ['import ("', 'import "a"\n', '/*', 'package a ', '`']],
    ['a.rs', ['use a ', 'use {', 'r#"', '/*', '"', "'", 'mod a;\n', 'mod a {', 'use a::{b,']],
  ] as const)
    for (const half of halves) read(path, half.repeat(300_000 / half.length))
  expect(processorMs() - begun).toBeLessThan(10_000)
})
