import { describe, expect, test } from 'bun:test'
import { processorMs } from '../../../test/support/processor-ms.ts'
import { describeViolation, filesOf, violationsOf } from './judge.ts'
import { data, type Files, projectOf, rulesOf, ui } from './project.fixture.ts'

function found(toml: string, files: Files) {
  const project = projectOf(files)
  return violationsOf(rulesOf(toml), project, filesOf(project).files).map(describeViolation)
}

describe('a rule finds', () => {
  test('an import that it forbids, with the line, and follows the reason', () => {
    const files = { ...data, 'src/ui/a.ts': `\nimport '../db/x'\nimport 'pg/lib'`, 'src/cli/b.ts': `import '../db/x'` }
    expect(found(`${ui}\nreason = "ask the API"`, files)).toEqual([
      'src/ui/a.ts:2 imports "../db/x" (src/db/x.ts), but may not import database (rule "ui-without-database": ask the API)',
      'src/ui/a.ts:3 imports "pg/lib", but may not import database (rule "ui-without-database": ask the API)',
    ])
  })

  test.each(['../DB/X', '../%64b/x', './link/x', '@/db/x', '../db/not-yet'])('the same import in disguise: %s', (specifier) => {
    const files = {
      ...data,
      'src/ui/link': '→ ../db',
      'tsconfig.json': '{"compilerOptions":{"paths":{"@/*":["src/*"]}}}',
      'src/ui/a.ts': `await import('${specifier}')`,
    }
    expect(found(ui, files)).toHaveLength(1)
  })

  test('an import beyond those that it allows; its own files are allowed', () => {
    const toml = '[rules.pure]\nfiles = "core/"\nimports_only = ["kit/", "package:node:path"]'
    const files = {
      'core/a.ts': `import './b'; import '../kit/c'; import 'path'\nimport 'fs'\nimport('x' + y)`,
      'core/b.ts': '',
      'kit/c.ts': `import 'fs'`,
    }
    expect(found(toml, files)).toEqual([
      'core/a.ts:2 imports "fs", but may import only kit/, package:node:path (rule "pure")',
      'core/a.ts:3 imports a name that is known only at run time, but may import only kit/, package:node:path (rule "pure")',
    ])
  })

  test('an import against the order of the layers, and one between independent parts', () => {
    const files = { 'a/x.ts': `import '../b/x'; import 'pg'`, 'b/x.ts': `import '../a/x'`, 'c/x.ts': `import '../a/x'` }
    expect(found('[rules.layers]\nlayers = ["a/", "b/"]', files)).toEqual([expect.stringMatching(/^b\/x.ts:1 imports "..\/a\/x"/)])
    expect(found('[rules.apart]\nindependent = ["a/", "b/"]', files)).toHaveLength(2)
  })

  test('imports of types, unless it says that they do not count', () => {
    const files = { ...data, 'src/ui/a.ts': `import type { X } from '../db/x'` }
    expect([found(ui, files).length, found(`${ui}\ntypes = false`, files).length]).toEqual([1, 0])
  })

  test('cycles, one for each group of files, on the shortest way', () => {
    const files = {
      'a.ts': `import './b'; import './d'`,
      'b.ts': `import './c'`,
      'c.ts': `import './a'`,
      'd.ts': `import './e'`,
      'e.ts': `import './e'`,
      'f.ts': `import './a'`,
    }
    expect(found('[rules.no-cycles]\nno_cycles = true', files)).toEqual([
      'a.ts:1 closes a cycle of imports: a.ts → b.ts → c.ts → a.ts (rule "no-cycles")',
      'e.ts:1 closes a cycle of imports: e.ts → e.ts (rule "no-cycles")',
    ])
    expect(found('[rules.no-cycles]\nno_cycles = true\nexcept = ["c.ts", "e.ts"]', files)).toEqual([])
  })

  test('a file without its test; the tests themselves need none', () => {
    const files = { 'routes/a.ts': '', 'routes/b.ts': '', 'routes/b.test.ts': '', 'routes/c.ts': '', 'routes/t/c.ts': '' }
    const toml = '[rules.tested]\nfiles = "routes/*.ts"\nbeside = ["{name}.test.ts", "t/{name}.ts"]'
    expect(found(toml, files)).toEqual(['routes/a.ts has no "routes/a.test.ts" or "routes/t/a.ts" beside it (rule "tested")'])
  })

  test('long files and full folders', () => {
    expect(found('[rules.short]\nfiles = "**/*.md"\nmax_lines = 2', { 'a.md': '1\n2\n', 'b.md': '1\n2\n3' })).toEqual([
      'b.md has 3 lines, at most 2 (rule "short")',
    ])
    const files = { 'x/a.ts': '', 'x/b.ts': '', 'x/c.md': '', 'y/a.ts': '' }
    expect(found('[rules.small]\nfiles = "**/*.ts"\nmax_files = 1', files)).toEqual(['x has 2 files, at most 1 (rule "small")'])
  })

  test('a file whose imports cannot be read, when it is about imports', () => {
    const files = { 'src/ui/a.ts': 'import {' }
    expect(found(ui, files)).toEqual([expect.stringMatching(/^src\/ui\/a.ts cannot be parsed: .* \(rule "ui-without-database"\)$/)])
    expect(found('[rules.short]\nfiles = "**"\nmax_lines = 2', files)).toEqual([])
  })

  test('nothing in a picture, which has no imports', () => {
    expect(found(ui, { 'src/ui/logo.png': 'x'.repeat(1_000_001) })).toEqual([])
  })

  test('nothing in packages and hidden folders', () => {
    expect(
      found(ui.replace('src/ui/', '**'), {
        'node_modules/a/b.ts': `import 'pg'`,
        '.cache/a.ts': `import 'pg'`,
        'a/node_modules/b.ts': `import 'pg'`,
      }),
    ).toEqual([])
  })
})

test('a chain of 20,000 files and a knot of 2,000 are judged in seconds', () => {
  const chain = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`a${at}.ts`, `import './a${at + 1}'`]))
  const knot = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`b${at}.ts`, `import './b${(at + 1) % 2_000}'`]))
  const begun = processorMs()
  const [only, ...more] = found('[rules.no-cycles]\nno_cycles = true', { ...chain, ...knot })
  expect(only).toMatch(/^b0.ts:1 closes a cycle of imports: b0.ts → b1.ts → .* … 1,?989 more … /)
  expect(more).toEqual([])
  expect(processorMs() - begun).toBeLessThan(10_000)
})
