import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPins } from './agent-memory.ts'
import { composeSystem } from './compose-system.ts'

let home = ''
let folder = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'braidclaw-compose-'))
  folder = join(home, 'agents', 'default')
  mkdirSync(join(folder, 'context'), { recursive: true })
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const write = (path: string, text: string | Uint8Array) => writeFileSync(join(folder, path), text)

async function text(): Promise<string> {
  const composed = await composeSystem({ folder })
  if (!composed.ok) throw new Error(composed.message)
  return composed.text
}

test('a named soul that is not there, leads out through a link, or is no text file is refused', async () => {
  const soul = (path: string) => composeSystem({ folder, soul: { path: join(home, path), home } })
  expect(await soul('souls/none.md')).toMatchObject({ ok: false, message: expect.stringContaining('agents.json names it') })
  symlinkSync('/etc/passwd', join(home, 'link.md'))
  expect(await soul('link.md')).toMatchObject({ ok: false, message: expect.stringContaining('leads out of') })
  mkdirSync(join(home, 'folder.md'))
  expect(await soul('folder.md')).toMatchObject({ ok: false, message: expect.stringContaining('not a regular file') })
  writeFileSync(join(home, 'long.md'), 'x'.repeat((1 << 20) + 1))
  expect(await soul('long.md')).toMatchObject({ ok: false, message: expect.stringContaining('at most 1048576') })
  writeFileSync(join(home, 'good.md'), 'named')
  expect(await soul('good.md')).toEqual({ ok: true, text: 'named', notices: [] })
})

test('nothing at all composes to nothing', async () => {
  expect(await text()).toBe('')
  expect(await composeSystem({ folder: join(home, 'agents', 'none') })).toEqual({ ok: true, text: '', notices: [] })
})

test('a soul alone is byte for byte the file', async () => {
  for (const soul of ['You are brief.', '  spaced \n\n\n', 'ünïcode ☃\r\n']) {
    write('soul.md', soul)
    expect(await text()).toBe(soul)
  }
})

test('context files follow in the order of their names; what is hidden or no .md is none', async () => {
  write('soul.md', 'soul\n\n')
  for (const name of ['b.md', 'a.md', '10.md', '9.md', '.hidden.md', 'c.txt', 'd.md~']) write(`context/${name}`, `${name}\n`)
  expect(await text()).toBe('soul\n\n10.md\n\n9.md\n\na.md\n\nb.md\n')
  rmSync(join(folder, 'soul.md'))
  expect(await text()).toBe('10.md\n\n9.md\n\na.md\n\nb.md\n')
})

test('a context that cannot be read is left out and said', async () => {
  write('context/a.md', 'a')
  mkdirSync(join(folder, 'context', 'b.md'))
  const composed = await composeSystem({ folder })
  expect(composed).toMatchObject({ ok: true, text: 'a', notices: [expect.stringContaining('left out')] })
  rmSync(join(folder, 'context'), { recursive: true })
  write('context', 'a file')
  expect(await composeSystem({ folder })).toMatchObject({ ok: true, text: '', notices: [expect.stringContaining('ENOTDIR')] })
})

test('pinned facts and a summary come last, word for word', async () => {
  write('soul.md', 'soul\n')
  const pins = openPins({ folder, now: () => 0, log: () => {} })
  pins.add('The cat is called Ada.')
  expect(await text()).toBe('soul\n---\nPINNED FACTS:\n- The cat is called Ada.\n')
  write('summary.md', 'They talked.\n')
  rmSync(join(folder, 'soul.md'))
  expect(await text()).toBe('CONVERSATION SUMMARY:\nThey talked.\n---\nPINNED FACTS:\n- The cat is called Ada.\n')
})
