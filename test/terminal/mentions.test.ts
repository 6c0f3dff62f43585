/** Files that a person names with "@": through the gate, on record, and only in the person's own words. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TurnStart } from '../../src/host/api.ts'
import type { Message } from '../../src/runtime/port.ts'
import type { Nest } from '../support/cli.ts'
import { gateway } from '../support/gateway.ts'
import { begin, place } from '../support/host.ts'
import { needs } from '../support/needs.ts'
import { ctrlD, talk } from '../support/talk.ts'
import { home, scripted } from '../support/turns.ts'

const echo = [{ text: 'Last result: {{last_tool_result}} Message: {{last_user_message}}' }]
const say = (at: Nest, message: string, more: readonly string[] = []) => at.run(['agent', '-m', message, ...more], scripted(at, echo))
const receipts = async (at: Nest) => (await at.run(['receipt', 'list'])).stdout

describe('the gate refuses, and the message is sent without', () => {
  test.each([
    ['a file that is not read', '.env', 'path.forbidden_read'],
    ['a file outside the workspace', '/etc/hostname', 'path.outside_workspace'],
    ['a key at home', '~/.ssh/id_ed25519', 'path.'],
    ['a link that leads out', 'link', 'path.outside_workspace'],
  ])('%s', async (_, name, rule) => {
    using at = home()
    at.file('.env', 'TOKEN=not-for-you\n')
    mkdirSync(join(at.home, '.ssh'))
    writeFileSync(join(at.home, '.ssh/id_ed25519'), 'not-for-you\n')
    symlinkSync(join(at.home, '.ssh/id_ed25519'), join(at.workspace, 'link'))
    const { code, stdout, stderr } = await say(at, `what is in @${name}`)
    expect([code, stdout.includes('not-for-you'), stderr.split('\n').length]).toEqual([3, false, 3])
    expect(stderr).toMatch(new RegExp(`✗ .*(Denied by |the rule "?)${rule.replace('.', '\\.')}`))
    expect(stdout).toContain(`Message: what is in @${name}`)
    expect(await receipts(at)).toMatch(/denied {3}(high|low) +file_read/)
  })

  test('a pipe, a device behind a link, bytes that are no text', async () => {
    using at = home()
    Bun.spawnSync(['mkfifo', join(at.workspace, 'pipe')])
    symlinkSync('/dev/zero', join(at.workspace, 'zero'))
    at.file('bytes', 'a\0b')
    const { stdout, stderr } = await say(at, '@pipe @zero @bytes')
    expect(stderr).toContain('✗ pipe: "pipe" is a named pipe (FIFO), not a regular file\n')
    expect(stderr).toContain('✗ zero: "zero" leads through a symbolic link to a place that the rule')
    expect(stderr).toContain('✗ bytes: "bytes" is not text: NUL byte at offset 1 of 3 bytes')
    expect(stdout).toContain('Message: @pipe @zero @bytes')
  })

  test('a rule of the operator about reading holds too', async () => {
    using at = home()
    mkdirSync(join(at.home, '.braidclaw/rules'), { recursive: true })
    const rule = { name: 'no-notes', on: { type: 'propose', tool: 'file_read' }, reason: 'not today' }
    writeFileSync(join(at.home, '.braidclaw/rules/a.json'), JSON.stringify(rule))
    at.file('notes.md', 'hello\n')
    const { stdout, stderr } = await say(at, '@notes.md')
    expect([stdout.includes('hello'), stderr]).toEqual([false, expect.stringContaining('✗ notes.md: Denied by rule.no-notes')])
  })
})

describe('the words of others are only text', () => {
  const reads = async (at: Nest) => (await receipts(at)).includes('file_read')

  test('what is piped in, with and without a message, and what the filter reads', async () => {
    using at = home()
    at.file('a.txt', 'the content')
    for (const args of [['agent', '-m', 'sum it up'], ['agent'], []]) {
      const { stdout } = await at.run(args, { ...scripted(at, echo), stdin: 'look at @a.txt' })
      expect([stdout.includes('look at @a.txt'), stdout.includes('the content')]).toEqual([true, false])
    }
    expect(await reads(at)).toBe(false)
  })

  test('a message over HTTP', async () => {
    using at = home()
    at.file('a.txt', 'the content')
    await using server = await gateway(at, [], scripted(at, echo))
    const { body } = await server.ask('/chat', { message: 'look at @a.txt' })
    expect(JSON.stringify(body)).toContain('look at @a.txt')
    expect([JSON.stringify(body).includes('the content'), await reads(at)]).toEqual([false, false])
  })

  test('only the code of the terminal looks for files in a message', async () => {
    const importers: string[] = []
    for await (const path of new Bun.Glob('src/**/*.ts').scan(join(import.meta.dir, '../..')))
      if (/import\W.*inbox\/mentions\.ts'|from '\.\/mentions\.ts'/.test(await Bun.file(join(import.meta.dir, '../..', path)).text()))
        importers.push(path)
    expect(importers.filter((path) => !path.endsWith('.test.ts')).sort()).toEqual([
      'src/channels/terminal/conversation-loop.ts',
      'src/channels/terminal/run-turn.ts',
    ])
  })
})

test('files and folders are read before the model is asked, each with a receipt, and the record replays', async () => {
  using at = home()
  at.file('src/a.ts', 'one\ntwo\nthree\n')
  at.file('my notes.md', 'milk\n')
  at.file('empty', '')
  const { code, stdout, stderr } = await say(at, 'compare @src/a.ts:2-3, @"my notes.md" @src @empty and @nothing')
  expect([code, stderr]).toEqual([0, '+ src/a.ts (lines 2–3 of 3)\n+ my notes.md (1 line)\n+ src (1 line)\n+ empty (empty)\n'])
  expect(stdout).toContain('Message: compare @src/a.ts:2-3, @"my notes.md" @src @empty and @nothing')
  expect((await receipts(at)).match(/allowed {2}low {5}file_(read|list)/g)).toHaveLength(4)
  const replayed = await at.run(['replay', 'last'])
  expect([replayed.code, replayed.stdout]).toEqual([0, expect.stringContaining('"output":"milk\\n"')])
  expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  const json = JSON.parse((await say(at, '@src', ['--json'])).stdout)
  expect(json).toMatchObject({ tools: [{ name: 'file_list', status: 'completed' }], ending: 'answered' })
})

test('a file of 100 MB is cut with a note', async () => {
  using at = home()
  at.file('big.log', 'a line of the log\n'.repeat(10_000))
  truncateSync(join(at.workspace, 'big.log'), 100_000_000)
  at.file('long.txt', 'a line of the log\n'.repeat(100_000))
  const { stdout, stderr } = await say(at, '@long.txt @big.log')
  expect(stderr).toMatch(/\+ long\.txt \(lines 1–\d+ of 100000\)\n/)
  expect(stderr).toMatch(/\+ big\.log \(lines 1–\d+ of [^)]+\)\n/)
  expect(stdout.length).toBeLessThan(100_000)
})

describe('a turn that begins with calls of the person', () => {
  const list: TurnStart = { calls: [{ name: 'file_read', input: { path: 'notes.md' } }] }
  const roles = (messages: readonly Message[]) => messages.map((message) => message.role)

  test('the model reads them as calls with results; a file that was added can be edited', async () => {
    using at = place('[security]\nautonomy = "full"\n')
    const host = await at.host()
    const asked: Message[][] = []
    const conversation = await begin(host, async function* (messages: readonly Message[]) {
      asked.push([...messages])
      if (asked.length === 1) yield { type: 'tool_use', name: 'file_edit', input: { path: 'notes.md', old: 'hello', new: 'bye' } }
      else yield { type: 'text', content: 'done' }
    } as never)
    await Array.fromAsync(conversation.run('see @notes.md', undefined, undefined, list))
    expect(roles(asked[0] ?? [])).toEqual(['user', 'assistant', 'tool'])
    expect(asked[0]?.at(-1)).toMatchObject({ name: 'file_read', content: expect.stringContaining('hello') })
    await Array.fromAsync(conversation.run('and now'))
    expect(roles(asked.at(-1) ?? []).filter((role) => role === 'user')).toHaveLength(2)
    await conversation.close()
    await host.close()
  })

  test('without a model they are the whole turn, and the next one begins after them', async () => {
    using at = place()
    const host = await at.host()
    const asked: Message[][] = []
    const conversation = await begin(host, async function* (messages: readonly Message[]) {
      asked.push([...messages])
      yield { type: 'text', content: 'I see' }
    } as never)
    await Array.fromAsync(conversation.run('! read', undefined, undefined, { ...list, asksNoModel: true }))
    expect([asked, conversation.ending()?.code]).toEqual([[], 'answered'])
    await Array.fromAsync(conversation.run('what did it say?'))
    expect(roles(asked[0] ?? [])).toEqual(['user', 'assistant', 'tool', 'user'])
    await conversation.close()
    await host.close()
  })
})

test.if(needs('bwrap'))('a confined agent adds no file and runs no command, and says so', async () => {
  using at = home()
  at.file('a.txt', 'the content')
  const { code, stdout, stderr } = await say(at, 'see @a.txt', ['--confined'])
  expect([code, stdout.includes('Message: see @a.txt'), stdout.includes('the content')]).toEqual([0, true, false])
  expect(stderr).toContain('note: not all was added to the message: this needs the records of the agent')
  const typed = await talk(
    at,
    echo,
    [
      ['> ', '! ls\r'],
      ['error: this needs the records', ''],
      ['> ', ctrlD],
    ],
    ['--confined'],
  )
  expect([typed.code, typed.stdout.includes('Message: ! ls')]).toEqual([0, false])
})

test('in the conversation: Tab completes a name, and the file is added', async () => {
  using at = home()
  at.file('src/needle.ts', 'found\n')
  const { code, stdout } = await talk(at, echo, [
    ['/help', 'what is @need\t'],
    ['@src/needle.ts', '\r'],
    ['Last result: found', ctrlD],
  ])
  expect([code, stdout]).toEqual([0, expect.stringContaining('+ src/needle.ts (1 line)')])
})
