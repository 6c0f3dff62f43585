/** An act whose receipt cannot be kept does not happen: exit 9 with the reason, and the workspace is as it was. */

import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import { executable, type Nest } from '../support/cli.ts'
import { given, needs } from '../support/needs.ts'
import { call, home, refused, scripted, turn } from '../support/turns.ts'

/** A home whose receipts are at `path`. */
function keeping(path?: string): Nest {
  const at = home()
  const file = join(at.home, '.braidclaw/config.toml')
  const text = readFileSync(file, 'utf8')
  if (path !== undefined) writeFileSync(file, text.replace(/(\[receipts\][^[]*?)path = "[^"]*"/, `$1path = ${JSON.stringify(path)}`))
  return at
}

const full = ['--autonomy', 'full']
const write = call('file_write', { path: 'made', content: 'x' })
const done = { text: 'done' }
const left = (at: Nest) => readdirSync(at.workspace)
const log = (at: Nest) => join(at.home, '.braidclaw/tool_receipts.log')

type Kind = readonly [name: string, path: (dir: string) => string, says: string]
const made = (path: string, make: (path: string) => unknown): string => {
  make(path)
  return path
}
const kinds: readonly Kind[] = [
  ['in a folder under /proc', () => '/proc/braidclaw/receipts.log', 'ENOENT'],
  ['under /proc', () => '/proc/receipts.log', 'ENOENT'],
  ['a file of the kernel', () => '/proc/self/comm', 'EINVAL'],
  ['under /sys', () => '/sys/braidclaw/receipts.log', '/sys/braidclaw'],
  [
    'in a folder that is a file',
    (dir) =>
      join(
        made(join(dir, 'file'), (path) => writeFileSync(path, '')),
        'receipts.log',
      ),
    'ENOTDIR',
  ],
  ['a folder', (dir) => made(join(dir, 'folder'), (path) => mkdirSync(path)), 'EISDIR'],
  ['a FIFO', (dir) => made(join(dir, 'fifo'), (path) => Bun.spawnSync(['mkfifo', path])), 'not an ordinary file'],
  ['a device that takes nothing', () => '/dev/full', 'not an ordinary file'],
  ['a device that keeps nothing', () => '/dev/null', 'not an ordinary file'],
  ['a loop of links', (dir) => made(join(dir, 'loop'), (path) => symlinkSync('loop', path)), 'ELOOP'],
  ['a link to a file', (dir) => made(join(dir, 'link'), (path) => symlinkSync('file', path)), 'ELOOP'],
]

test.each(kinds)('the log is %s: nothing is written', async (_, pathIn, says) => {
  using folder = home()
  using at = keeping(pathIn(folder.dir))
  const result = await turn(at, [write, done], full)
  refused(result, 9, 'nothing was done, because no receipt of it could be kept', says, '[receipts]')
  expect(left(at)).toEqual([])
})

test.each(['shell', 'tool run'])('%s does not act either', async (door) => {
  using at = keeping('/proc/receipts.log')
  const args = door === 'shell' ? { command: 'touch made' } : { path: 'made', content: 'x' }
  const result =
    door === 'shell'
      ? await turn(at, [call('shell', args), done], full)
      : await at.run(['tool', 'run', 'file_write', '--json', JSON.stringify(args), ...full])
  refused(result, 9, 'no receipt of it could be kept')
  expect(left(at)).toEqual([])
})

test('a turn that only talks is answered, and one that was refused leaves the next one alone', async () => {
  using at = keeping('/proc/receipts.log')
  expect((await turn(at, [write, done], full)).code).toBe(9)
  expect(await turn(at, [{ text: 'hello' }])).toMatchObject({ code: 0, stdout: 'hello\n' })
})

test('what an operator takes back leaves a receipt first or does not happen', async () => {
  using at = keeping()
  expect((await turn(at, [write, done], full)).code).toBe(0)
  renameSync(log(at), `${log(at)}.away`)
  refused(await at.run(['undo']), 9, 'missing or empty')
  expect(left(at)).toEqual(['made'])
  renameSync(`${log(at)}.away`, log(at))
  expect((await at.run(['undo'])).code).toBe(0)
  expect(left(at)).toEqual([])
})

/** Writes one file for each message. */
const writes: ModelCall = async function* (messages) {
  const last = messages.at(-1)
  if (last?.role !== 'user') yield { type: 'text', content: 'done' }
  else yield { type: 'tool_use', name: 'file_write', input: { path: last.content, content: 'x' } }
}

test('a log that goes away while a program runs: the next act does not happen, and it goes on when the log is back', async () => {
  using at = keeping()
  const agent = createAgent({ cwd: at.workspace, home: join(at.home, '.braidclaw'), env: at.env, modelCall: writes })
  const run = async (name: string) => {
    for await (const event of agent.run(name)) if (event.type === 'approval_gate') await agent.approve(event.gateId, { allow: true })
    return agent.ending()?.code
  }
  expect(await run('a')).toBe('answered')
  renameSync(log(at), `${log(at)}.away`)
  expect(await run('b')).toBe('integrity')
  renameSync(`${log(at)}.away`, log(at))
  expect(await run('c')).toBe('answered')
  await agent.close()
  expect(left(at).sort()).toEqual(['a', 'c'])
})

test('what is honest works: a deep new path, an empty log, and many processes at once', async () => {
  using folder = home()
  using at = keeping(join(folder.dir, 'a/b/receipts.log'))
  const first = await Promise.all(['p', 'q', 'r', 's'].map((path) => turn(at, [call('file_write', { path, content: 'x' }), done], full)))
  expect(first.map(({ code }) => code)).toEqual([0, 0, 0, 0])
  expect((await at.run(['receipt', 'verify', '--deep'])).stdout).toStartWith('valid: 4 receipts')
  using other = keeping(made(join(folder.dir, 'empty'), (path) => writeFileSync(path, '')))
  expect((await turn(other, [write, done], full)).code).toBe(0)
})

const mountable = given(process.getuid?.() === 0, 'root') && needs('unshare')

test.if(mountable)('a full volume and a read-only one, with a log or without', async () => {
  using at = keeping('/mnt/receipts.log')
  const script = (step: string) => `mount -t tmpfs -o size=256k none /mnt || exit 99; ${step}; exec "$0" "$@"`
  const inVolume = (step: string) => turn(at, [write, done], full, { through: ['unshare', '-m', 'sh', '-c', script(step)] })
  const fill = 'cat /dev/zero > /mnt/fill 2>/dev/null'
  refused(await inVolume(fill), 9, 'the disk is full')
  refused(await inVolume('mount -o remount,ro /mnt'), 9, 'read-only')
  expect(left(at)).toEqual([])
  const { env } = scripted(at, [write, done])
  const twice = await at.run(['agent', '-m', 'go', ...full], {
    env,
    through: ['unshare', '-m', 'sh', '-c', `${script(`"${executable}" agent -m go --autonomy full >/dev/null; rm made; ${fill}`)}`],
  })
  expect([twice.code, left(at)]).toEqual([9, []])
})
