/** docs/channels.md: the channel that stands there is added to a copy of the sources, as it stands, and talked to. */

import { expect, test } from 'bun:test'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { laws } from '../shape/laws.ts'
import { parseModule } from '../shape/module.ts'
import { folderOf } from '../support/daemon.ts'
import { home, scripted } from '../support/turns.ts'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(root, 'docs/channels.md'), 'utf8')
const [, source = ''] = /```ts\n(.*?)```/s.exec(page) ?? []
const [imported = '', listed = ''] = [...page.matchAll(/^\+(.+)$/gm)].map(([, line = '']) => line)
const path = 'src/channels/lines/channel.ts'

test('it keeps the laws', () => {
  const imported = ['src/channels/inbox/channel-api.ts', 'src/kit/settings.ts', 'src/channels/terminal/printer.ts'].map((file) =>
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
  const config = (...words: readonly string[]) => {
    const bun = [process.execPath, '--config=/dev/null', '--no-env-file', 'src/main.ts', 'config', ...words]
    const { exitCode, stdout, stderr } = Bun.spawnSync(bun, { cwd: copy, env: at.env })
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
  }
  const file = join(at.home, '.braidclaw/config.toml')
  const own = readFileSync(file, 'utf8')
  writeFileSync(file, `[channels.lines]\nenabled = 1\nsing = ">"\n`)
  expect(config('validate')).toEqual({
    code: 1,
    stdout: '',
    stderr: `error: ${file}:2:11: channels.lines.enabled: must be true or false, found the number 1\nerror: ${file}:3:1: channels.lines.sing: unknown key; did you mean "sign"?\n2 problems found\n`,
  })
  writeFileSync(file, `${own}\n[channels.lines]\nsign = "> "\n`)
  expect(config('show').stdout).toContain('[channels.lines]\nenabled = false\nsign = "> "\n')
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', 'src/main.ts', 'daemon', '--fifo-dir', folderOf(at)], {
    cwd: copy,
    env: { ...at.env, ...replies.env, BRAIDCLAW_WORKSPACE: at.workspace, BRAIDCLAW_CHANNELS_LINES_ENABLED: '1' },
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
  expect(seen.text).toBe('> You said one.\n> You said two.\n')
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
}, 120_000)
