import { describe, expect, test } from 'bun:test'
import { parse } from 'smol-toml'
import type { Change } from '../../runtime/changes.ts'
import { describeViolation, filesOf, violationsOf, worsened } from './judge.ts'
import { type Files, projectOf } from './project.fixture.ts'
import { parseStructure } from './rules.ts'

function rulesOf(toml: string) {
  const { rules, problems } = parseStructure({ data: parse(toml), problems: [], place: () => undefined })
  expect(problems).toEqual([])
  return rules
}

function found(toml: string, files: Files) {
  const project = projectOf(files)
  return violationsOf(rulesOf(toml), project, filesOf(project).files).map(describeViolation)
}

const state = (text: string | undefined) =>
  text === undefined ? undefined : ({ kind: text.startsWith('→ ') ? 'link' : 'file', mode: 0o644 } as const)

/** The files of a change set are those whose text differs. */
function worse(toml: string, before: Files, edits: { readonly [path: string]: string | undefined }) {
  const after = Object.fromEntries(
    Object.entries({ ...before, ...edits }).flatMap(([path, text]) => (text === undefined ? [] : [[path, text]])),
  )
  const changes = Object.keys(edits).map((path): Change => ({ path, before: state(before[path]), after: state(edits[path]) }))
  return worsened(rulesOf(toml), { before: projectOf(before), after: projectOf(after), changes }).map(describeViolation)
}

const ui =
  '[blocks]\nui = "src/ui/"\ndatabase = ["src/db/", "package:pg"]\n[rules.ui-without-database]\nfiles = "ui"\nimports_no = "database"'
const data = { 'src/db/x.ts': '' }

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

describe('only what a change set makes worse counts', () => {
  const old = { ...data, 'src/ui/a.ts': `import '../db/x'\n`, 'src/ui/b.ts': '' }

  test('an old violation does not block another change of its file', () => {
    expect(worse(ui, old, { 'src/ui/a.ts': `// new\nimport '../db/x'\nimport './b'\n` })).toEqual([])
    expect(worse(ui, old, { 'src/ui/a.ts': '' })).toEqual([])
  })

  test('a new import does, of an old or a new file', () => {
    expect(worse(ui, old, { 'src/ui/a.ts': `import '../db/x'\nimport 'pg'\n` })).toEqual([
      expect.stringContaining('src/ui/a.ts:2 imports "pg"'),
    ])
    expect(worse(ui, old, { 'src/ui/c.ts': `import '../db/x'` })).toHaveLength(1)
    expect(worse(ui, old, { 'src/ui/b.ts': 'import {' })).toEqual([expect.stringContaining('cannot be parsed')])
  })

  test('an alias or a link that leads an old import elsewhere counts', () => {
    const files = {
      ...data,
      'src/x.ts': '',
      'src/ui/a.ts': `import '@/x'; import './d/x'`,
      'tsconfig.json': '{"compilerOptions":{"paths":{"@/*":["src/*"]}}}',
    }
    expect(worse(ui, files, { 'tsconfig.json': '{"compilerOptions":{"paths":{"@/*":["src/db/*"]}}}' })).toHaveLength(1)
    expect(worse(ui, files, { 'src/ui/d': '→ ../db' })).toHaveLength(1)
  })

  test('a longer file counts when it was too long before, a shorter one does not', () => {
    const toml = '[rules.short]\nfiles = "**"\nmax_lines = 2'
    const files = { 'a.md': '1\n2\n3\n' }
    expect(worse(toml, files, { 'a.md': '1\n2\n4\n' })).toEqual([])
    expect(worse(toml, files, { 'a.md': '1\n2\n3\n4\n' })).toHaveLength(1)
  })

  test('a file more in a full folder counts, and a file for another does not', () => {
    const toml = '[rules.small]\nfiles = "x/*"\nmax_files = 1'
    expect(worse(toml, { 'x/a': '', 'x/b': '' }, { 'x/c': '' })).toHaveLength(1)
    expect(worse(toml, { 'x/a': '', 'x/b': '' }, { 'x/c': '', 'x/b': undefined })).toEqual([])
  })

  test('a deleted test counts, a file that goes with its test does not', () => {
    const toml = '[rules.tested]\nfiles = "routes/**"\nbeside = ["{name}.test.ts", "t/{name}.ts"]'
    const files = { 'routes/a.ts': '', 'routes/a.test.ts': '', 'routes/b.ts': '', 'routes/t/b.ts': '' }
    expect(worse(toml, files, { 'routes/a.test.ts': undefined })).toEqual([expect.stringContaining('routes/a.ts has no')])
    expect(worse(toml, files, { 'routes/t/b.ts': undefined })).toEqual([expect.stringContaining('routes/b.ts has no')])
    expect(worse(toml, files, { 'routes/a.test.ts': undefined, 'routes/a.ts': undefined })).toEqual([])
    expect(worse(toml, files, { 'routes/c.ts': '', 'routes/c.test.ts': '' })).toEqual([])
  })

  test('an import that closes a cycle counts, an old cycle does not', () => {
    const toml = '[rules.no-cycles]\nno_cycles = true'
    const files = { 'a.ts': `import './b'`, 'b.ts': `import './c'`, 'c.ts': '', 'd.ts': `import './e'`, 'e.ts': `import './d'` }
    expect(worse(toml, files, { 'c.ts': `import './a'` })).toEqual([
      'c.ts:1 closes a cycle of imports: c.ts → a.ts → b.ts → c.ts (rule "no-cycles")',
    ])
    expect(worse(toml, files, { 'd.ts': `import './e'\nimport './a'`, 'f.ts': `import './d'` })).toEqual([])
  })

  test('git and packages are not looked at', () => {
    expect(
      worse(ui.replace('src/ui/', '**'), data, {
        '.git/a.ts': `import 'pg'`,
        'node_modules/a.ts': `import 'pg'`,
        '/outside/.git/a.ts': `import 'pg'`,
      }),
    ).toEqual([])
  })
})

test('a chain of 20,000 files and a knot of 2,000 are judged in seconds', () => {
  const chain = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`a${at}.ts`, `import './a${at + 1}'`]))
  const knot = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`b${at}.ts`, `import './b${(at + 1) % 2_000}'`]))
  const begun = performance.now()
  const [only, ...more] = found('[rules.no-cycles]\nno_cycles = true', { ...chain, ...knot })
  expect(only).toMatch(/^b0.ts:1 closes a cycle of imports: b0.ts → b1.ts → .* … 1,?989 more … /)
  expect(more).toEqual([])
  expect(performance.now() - begun).toBeLessThan(10_000)
})
