/** What a command writes into caches goes with its changes: it acts for nobody when the person says no, and only where its changes could. */

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const real = test.if(needs('bwrap', 'python3'))

const forge = `import importlib._bootstrap_external as b, importlib.util as u, os
code = compile('def say(): return "forged"', 'mod.py', 'exec')
for folder in ['__pycache__', '.mypy_cache', 'node_modules/.cache', 'target/debug', 'web/.next/cache']: os.makedirs(folder, exist_ok=True)
open(u.cache_from_source('mod.py'), 'wb').write(b._code_to_hash_pyc(code, u.source_hash(open('mod.py', 'rb').read()), False))
for path in ['.mypy_cache/x', 'node_modules/.cache/x', 'target/debug/x', 'web/.next/cache/x']: open(path, 'w').write('forged')
`

function project(at: Nest): void {
  at.file('mod.py', 'def say(): return "honest"\n')
  at.file('main.py', 'import mod\nprint(mod.say())\n')
  at.file('Cargo.toml', '')
  at.file('web/.next/x', '')
  at.file('node_modules/x', '')
  at.file('forge.py', forge)
}

/** What a command sees of the caches, in a new conversation or the last one (`-c`). */
async function seen(at: Nest, ...args: string[]): Promise<string> {
  const command = 'cat .mypy_cache/x node_modules/.cache/x target/debug/x web/.next/cache/x 2>/dev/null; python3 main.py'
  const { stdout } = await turn(at, [call('shell', { command }), { text: 'So: {{last_tool_result}}' }], args, { through: alone })
  return /^So: (.*)$/m.exec(stdout)?.[1] ?? stdout
}

async function forged(at: Nest, command: string, ...args: string[]) {
  const ran = await turn(at, [call('shell', { command }), { text: 'So: {{last_tool_result}}' }], args, { through: alone })
  const [, id = ''] = /braidclaw approvals allow (\S+)/.exec(ran.stderr) ?? []
  return { ...ran, id }
}

/** Each one is a turn of its own; the deep tier tries all. */
const few = (ways: readonly string[][]) => (isDeep ? ways : ways.slice(0, 2))

const everything = 'forged'.repeat(4)
const withNote = 'python3 -B forge.py && echo x > note'

real('a no drops the caches with the changes, also for a process that was not there to hear it', async () => {
  using at = home('', 'readonly_commands = "drop"\n')
  project(at)
  const { code, id } = await forged(at, withNote)
  expect([code, await seen(at, '-c')]).toEqual([4, 'honest'])
  expect((await at.run(['approvals', 'deny', id])).code).toBe(0)
  for (const args of few([['-c'], [], ['--autonomy', 'readonly'], ['--autonomy', 'full']]))
    expect([args, await seen(at, ...args)]).toEqual([args, 'honest'])
  expect(existsSync(join(at.workspace, 'note'))).toBe(false)
})

real('a yes that comes later keeps what is checked, for this conversation and later ones of the same level', async () => {
  using at = home('', 'readonly_commands = "drop"\n')
  project(at)
  const { id } = await forged(at, withNote)
  expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
  for (const args of [['-c'], []]) expect([args, await seen(at, ...args)]).toEqual([args, `${everything}honest`])
  for (const args of few([
    ['-c', '--autonomy', 'readonly'],
    ['--autonomy', 'full'],
    ['-c', '--auto'],
    ['-c', '--autonomy', 'full'],
  ]))
    expect([args, await seen(at, ...args)]).toEqual([args, 'honest'])
})

real('caches alone ask nothing, and stay with the conversation and its level', async () => {
  using at = home()
  project(at)
  expect((await forged(at, 'python3 -B forge.py', '--autonomy', 'full')).code).toBe(0)
  expect(await seen(at, '-c', '--autonomy', 'full')).toBe(`${everything}honest`)
  for (const args of [['-c'], ['--autonomy', 'full']]) expect([args, await seen(at, ...args)]).toEqual([args, 'honest'])
})

real('what is applied without a question is kept like what a person allows', async () => {
  using at = home()
  project(at)
  expect((await forged(at, withNote, '--autonomy', 'full')).code).toBe(0)
  for (const args of [['-c'], []]) expect(await seen(at, ...args, '--autonomy', 'full')).toBe(`${everything}honest`)
})
