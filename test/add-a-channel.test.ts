/** docs/channels.md: the channel that stands there is added to a copy of the sources, as it stands, and talked to. */

import { expect, test } from 'bun:test'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { laws } from './shape/laws.ts'
import { parseModule } from './shape/module.ts'
import { folderOf } from './support/daemon.ts'
import { home, scripted } from './support/turns.ts'

const root = join(import.meta.dir, '..')
const page = readFileSync(join(root, 'docs/channels.md'), 'utf8')
const [, source = ''] = /```ts\n(.*?)```/s.exec(page) ?? []
const [imported = '', listed = ''] = [...page.matchAll(/^\+(.+)$/gm)].map(([, line = '']) => line)
const path = 'src/channels/lines/channel.ts'

test('it keeps the laws', () => {
  const imported = ['src/host/api.ts', 'src/channels/terminal/printer.ts'].map((file) =>
    parseModule(file, readFileSync(join(root, file), 'utf8')),
  )
  const modules = [parseModule(path, source), ...imported]
  const broken = laws.flatMap(({ name, check }) => check(modules).map((found) => ({ name, ...found })))
  expect(broken.filter(({ file }) => file === path)).toEqual([])
})

test('one file and one line in the list are all it takes: lines are answered in order, and SIGTERM ends it', async () => {
  using at = home()
  const copy = join(at.dir, 'copy')
  for (const part of ['src', 'package.json']) cpSync(join(root, part), join(copy, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  mkdirSync(join(copy, 'src/channels/lines'))
  writeFileSync(join(copy, path), source)
  const list = join(copy, 'src/channels/list.ts')
  const before = readFileSync(list, 'utf8')
  writeFileSync(list, before.replace('\n\nimport', `\n\n${imported}\nimport`).replace('  fifo,\n', `  fifo,\n${listed}\n`))
  const replies = scripted(at, [{ text: 'You said {{last_user_message}}.' }])
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', 'src/main.ts', 'daemon', '--fifo-dir', folderOf(at)], {
    cwd: copy,
    env: { ...at.env, ...replies.env, BRAIDCLAW_WORKSPACE: at.workspace },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.write('one\ntwo\n')
  child.stdin.flush()
  const printed = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  const seen = { text: '' }
  while (!seen.text.includes('two')) {
    const { value, done } = await printed.read()
    if (done) throw new Error(`it ended: ${await child.stderr.text()}`)
    seen.text += value
  }
  expect(seen.text).toBe('You said one.\nYou said two.\n')
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
}, 20_000)
