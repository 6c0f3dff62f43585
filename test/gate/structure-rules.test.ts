/** The rules for the structure of a project, on what commands and file tools change. */

import { test as always, describe, expect } from 'bun:test'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, call, home, scripted, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

const veto = '[rules.ui-without-database]\nfiles = "src/ui/"\nimports_no = "src/db/"\nreason = "ask the API"\n'

async function project(rules = veto, { trusted = true } = {}): Promise<Nest> {
  const at = home()
  at.file('.braidclaw/structure.toml', rules)
  at.file('src/db/x.ts', 'export const x = 1\n')
  at.file('src/ui/old.ts', `import { x } from '../db/x'\n`)
  if (trusted) await at.run(['trust', at.workspace])
  return at
}

const shell = (command: string) => [call('shell', { command }), { text: 'over' }]
const write = (path: string, content: string) => [call('file_write', { path, content }), { text: 'over' }]
const read = (at: Nest, path: string) => (existsSync(join(at.workspace, path)) ? readFileSync(join(at.workspace, path), 'utf8') : undefined)
const bad = `import '../db/x'\n`

describe('a veto', () => {
  test.each(['--auto', '--autonomy=full'])(
    'drops what a command changed with %s: rule, path and line are in the refusal',
    async (level) => {
      using at = await project()
      const ran = await turn(at, shell(`printf "\\nimport '../db/x'\\n" > src/ui/a.ts; echo x > b.txt`), [level], { through: alone })
      expect([ran.code, read(at, 'src/ui/a.ts'), read(at, 'b.txt')]).toEqual([3, undefined, undefined])
      expect(ran.stderr).toContain('rule.structure.ui-without-database')
      expect(ran.stderr).toContain(
        'src/ui/a.ts:2 imports "../db/x" (src/db/x.ts), but may not import src/db/ (rule "ui-without-database": ask the API)',
      )
      expect((await at.run(['receipt', 'list', '--json'])).stdout).toContain('rule.structure.ui-without-database')
    },
  )

  test.each(['--auto', '--autonomy=full'])('denies a file tool with %s before it writes', async (level) => {
    using at = await project()
    const ran = await turn(at, write('src/../src/ui/a.ts', bad), [level], { through: alone })
    expect([ran.code, read(at, 'src/ui/a.ts')]).toEqual([3, undefined])
    expect(ran.stderr).toContain('rule.structure.ui-without-database')
    const edit = [call('file_edit', { path: 'src/ui/old.ts', old: '../db/x', new: '../db/y' }), { text: 'over' }]
    expect((await turn(at, edit, [level], { through: alone })).code).toBe(3)
    expect(read(at, 'src/ui/old.ts')).toContain('../db/x')
  })

  test('passes what an old violation has nothing to do with, by commands and by file tools', async () => {
    using at = await project()
    const ran = await turn(at, shell(`echo '// note' >> src/ui/old.ts`), ['--autonomy=full'], { through: alone })
    expect([ran.code, read(at, 'src/ui/old.ts')]).toEqual([0, expect.stringContaining('// note')])
    expect((await turn(at, write('src/ui/b.ts', 'export const b = 1\n'), ['--autonomy=full'], { through: alone })).code).toBe(0)
    expect(read(at, 'src/ui/b.ts')).toBe('export const b = 1\n')
  })

  test('follows a link in the workspace, by which a file tool writes', async () => {
    using at = await project()
    symlinkSync('src/ui', join(at.workspace, 'door'))
    expect((await turn(at, write('door/a.ts', bad), ['--autonomy=full'], { through: alone })).code).toBe(3)
    expect(read(at, 'src/ui/a.ts')).toBeUndefined()
  })
})

describe('a rule that asks', () => {
  const ask = `${veto}verdict = "ask"\n`

  test('keeps the changes of a command until somebody says yes, in full too', async () => {
    using at = await project(ask)
    const ran = await turn(at, shell(`echo "import '../db/x'" > src/ui/a.ts`), ['--autonomy', 'full'], { through: alone })
    expect([ran.code, read(at, 'src/ui/a.ts')]).toEqual([4, undefined])
    const [{ id }] = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)
    expect((await at.run(['approvals', 'show', id])).stdout).toContain('src/ui/a.ts:1 imports')
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    expect(read(at, 'src/ui/a.ts')).toBe(bad)
  })

  test('asks before a file tool writes, in full too', async () => {
    using at = await project(ask)
    const ran = await turn(at, write('src/ui/a.ts', bad), ['--autonomy', 'full'], { through: alone })
    expect([ran.code, read(at, 'src/ui/a.ts')]).toEqual([4, undefined])
    const [{ id, reason }] = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)
    expect(reason).toContain('src/ui/a.ts:1 imports "../db/x"')
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    expect((await at.run(['agent', '-c', '-m', 'go on', '--autonomy', 'full'], scripted(at, write('src/ui/a.ts', bad)))).code).toBe(0)
    expect(read(at, 'src/ui/a.ts')).toBe(bad)
  })
})

test('rules with a mistake make every change ask, and say where it is', async () => {
  using at = await project(`${veto}imports_nothing = 1\n`)
  const ran = await turn(at, shell('echo x > notes.txt'), ['--autonomy', 'full'], { through: alone })
  expect([ran.code, read(at, 'notes.txt')]).toEqual([4, undefined])
  expect((await at.run(['approvals', 'list', '--json'])).stdout).toContain(
    'structure.toml:5:1: rules.ui-without-database.imports_nothing: unknown key',
  )
  expect((await turn(at, write('notes.txt', 'x'), ['--autonomy', 'full'], { through: alone })).code).toBe(4)
})

test('the agent changes the rules neither with a command nor with a file tool', async () => {
  using at = await project()
  expect((await turn(at, shell('rm .braidclaw/structure.toml'), ['--autonomy', 'full'], { through: alone })).code).toBe(3)
  expect((await turn(at, write('.braidclaw/structure.toml', ''), ['--autonomy', 'full'], { through: alone })).code).toBe(3)
  expect(read(at, '.braidclaw/structure.toml')).toBe(veto)
})

test('in a folder that is not trusted no rule holds, and a line says so', async () => {
  using at = await project(veto, { trusted: false })
  const ran = await turn(at, shell(`echo "import '../db/x'" > src/ui/a.ts`), ['--autonomy', 'full'], { through: alone })
  expect([ran.code, read(at, 'src/ui/a.ts')]).toEqual([0, bad])
  expect(ran.stderr).toContain('.braidclaw/structure.toml is ignored: this folder is not trusted')
})

test('two commands whose changes are a cycle only together: the second one is refused', async () => {
  using at = await project('[rules.no-cycles]\nno_cycles = true\n')
  const both = [
    call('shell', { command: `echo "import './b'" > src/ui/a.ts` }),
    call('shell', { command: `echo "import './a'" > src/ui/b.ts` }),
    { text: 'over' },
  ]
  const ran = await turn(at, both, ['--autonomy', 'full'], { through: alone })
  expect([read(at, 'src/ui/a.ts'), read(at, 'src/ui/b.ts')]).toEqual([`import './b'\n`, undefined])
  expect(ran.stderr).toContain('closes a cycle of imports: src/ui/b.ts → src/ui/a.ts → src/ui/b.ts')
})
