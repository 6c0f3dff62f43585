/** Does what docs/hooks.md says, through the real executable; doctor and `hooks` tell of the same files. */

import { test as always, expect } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { home } from '../support/turns.ts'

const test = always.if(needs('bwrap'))

const page = readFileSync(join(import.meta.dir, '../../docs/hooks.md'), 'utf8')
const [trim = '', noRm = ''] = [...page.matchAll(/```toml\n([\s\S]*?)```/g)].map(([, text = '']) => text)
const [result = ''] = /^created [^`]*/m.exec(page) ?? []
const [denial = ''] = /(?<=`)Denied by [^`]*/.exec(page) ?? []

function withHooks(hooks: { readonly [name: string]: string }): Nest {
  const at = home()
  at.config('[security]\nautonomy = "full"\n')
  mkdirSync(join(at.home, '.braidclaw/hooks'), { recursive: true })
  for (const [name, text] of Object.entries(hooks)) writeFileSync(join(at.home, '.braidclaw/hooks', `${name}.toml`), text)
  return at
}

test('the hook of the page formats, its change set is kept and can be undone', async () => {
  using at = withHooks({ trim })
  const input = JSON.stringify({ path: 'a.md', content: 'hello   \n\tx\n' })
  const { stdout, stderr } = await at.run(['tool', 'run', 'file_write', '--json', input])
  expect([stdout.trim(), stderr]).toEqual([result.trim().replace('10 bytes', '12 bytes'), ''])
  expect(readFileSync(join(at.workspace, 'a.md'), 'utf8')).toBe('hello\n\tx\n')
  expect((await at.run(['changes', 'list', '--json'])).stdout).toContain('hook.trim')
  expect((await at.run(['undo'])).code).toBe(0)
  expect(readFileSync(join(at.workspace, 'a.md'), 'utf8')).toBe('hello   \n\tx\n')
})

test('the hook of the page refuses a command, and the receipt names it', async () => {
  using at = withHooks({ 'no-rm': noRm })
  const denied = await at.run(['tool', 'run', 'shell', '--json', '{"command":"rm -rf build"}'])
  expect([denied.code, denied.stdout + denied.stderr]).toEqual([3, expect.stringContaining(denial.replace('Denied by ', ''))])
  expect((await at.run(['receipt', 'list', '--json'])).stdout).toContain('hook.no-rm')
})

always('list, doctor and a turn name what is wrong', async () => {
  using at = withHooks({ good: 'on = ["stop"]\nrun = "true"\n' })
  const listed = await at.run(['hooks', 'list'])
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^stop\tgood\tsandbox\t/), stderr: '' })
  expect((await at.run(['doctor'])).stdout).toContain('✓ hooks       good\n')
  writeFileSync(join(at.home, '.braidclaw/hooks/bad.toml'), 'on = ["stop"]\n')
  const why = 'bad.toml.run: must be a command line for /bin/sh'
  expect(await at.run(['hooks', 'list'])).toMatchObject({ code: 1, stderr: expect.stringContaining(why) })
  expect((await at.run(['doctor'])).stdout).toContain(why)
  expect(await at.run(['agent', '-m', 'hello'])).toMatchObject({ code: 2, stderr: expect.stringContaining(why) })
})
