/** Conversations as people and scripts keep them: chosen, named, copied, exported, imported, deleted; shown by real processes. */

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openMemory } from '../../src/memory/memory.ts'
import { oldHome, unpack } from '../records/homes/unpack.ts'
import { type Nest, nest } from '../support/cli.ts'
import { ctrlD, talk } from '../support/talk.ts'
import { alone, call, home, refused, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const say = (at: Nest, message: string, replies: readonly object[] = [{ text: `heard: ${message}` }], args: readonly string[] = []) =>
  at.run(['agent', '-m', message, ...args], { env: scripted(at, replies).env })

async function json(at: Nest, words: readonly string[], stdin?: string) {
  const { code, stdout, stderr } = await at.run([...words, '--json'], stdin === undefined ? {} : { stdin })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

const list = (at: Nest) => json(at, ['session', 'list'])
const ids = async (at: Nest) => (await list(at)).map(({ conversationId }: { conversationId: string }) => conversationId)
const database = (at: Nest) => join(at.home, '.braidclaw/memory.sqlite')

/** Returns the messages that the model would get next. */
function contextOf(at: Nest, id: string) {
  const opened = openMemory({ path: database(at), log: () => {}, now: Date.now })
  if (!opened.ok) throw new Error(opened.failure.message)
  const { messages } = opened.memory.context(id, 1_000_000)
  opened.memory.close()
  return messages
}

async function sound(at: Nest) {
  expect((await at.run(['rebuild', '--check'])).code).toBe(0)
  expect((await at.run(['receipt', 'verify', '--deep'])).stdout).toStartWith('valid: ')
  expect(await at.run(['replay', '--all'])).toMatchObject({ code: 0, stderr: expect.not.stringContaining('warning') })
}

const working = [
  call('file_write', { path: 'a.txt', content: 'green' }),
  call('file_read', { path: 'a.txt' }),
  { text: 'Written and read.' },
]

async function twoTurns(at: Nest): Promise<string> {
  expect((await say(at, 'my bicycle is green', working, ['--auto'])).stdout).toBe('Written and read.\n')
  expect((await say(at, 'and my aardvark grey', undefined, ['-c'])).code).toBe(0)
  const [id] = await ids(at)
  return id
}

test('a copy holds the messages byte for byte, up to now or to a turn, and the original stays as it was', async () => {
  using at = home()
  const id = await twoTurns(at)
  const [before, receipts] = [await json(at, ['session', 'show', id]), await json(at, ['receipt', 'list'])]
  const copy = await json(at, ['session', 'fork', id])
  expect(copy).toMatchObject({ title: 'my bicycle is green (fork)', turns: 2 })
  expect(contextOf(at, copy.conversationId)).toEqual(contextOf(at, id))
  const roles = contextOf(at, id).map(({ role }) => role)
  expect(roles.join(' ')).toBe('user assistant tool assistant tool assistant user assistant')
  const first = await json(at, ['session', 'fork', 'last', '--turns', '1'])
  expect(first).toMatchObject({ title: 'my bicycle is green (fork 2)', turns: 1 })
  expect(contextOf(at, first.conversationId)).toEqual(contextOf(at, id).slice(0, 6))

  expect((await say(at, 'go on', undefined, ['--resume', first.conversationId])).code).toBe(0)
  expect(contextOf(at, first.conversationId)).toHaveLength(8)
  const again = await json(at, ['session', 'fork', first.conversationId])
  expect(contextOf(at, again.conversationId)).toEqual(contextOf(at, first.conversationId))
  expect(await json(at, ['session', 'show', id])).toEqual(before)
  expect(await json(at, ['receipt', 'list'])).toEqual(receipts)
  expect((await json(at, ['cost', '--by', 'conversation'])).rows.filter(({ key }: { key: string }) => key === copy.conversationId)).toEqual(
    [],
  )
  await sound(at)
})

test('a copy takes the summary along, and what the conversation has read', async () => {
  using at = home()
  const env = { HISTORY_MAX: '4', HISTORY_KEEP: '2' }
  for (const [index, message] of ['first', 'second', 'third'].entries()) {
    const replies = [{ text: `heard ${message}` }, { text: 'SUMMED UP' }]
    await at.run(['agent', ...(index === 0 ? [] : ['-c']), '-m', message], { env: { ...env, ...scripted(at, replies).env } })
  }
  const [id] = await ids(at)
  expect(contextOf(at, id)[0]).toMatchObject({ role: 'user', content: expect.stringContaining('SUMMED UP') })
  using db = new Database(database(at))
  db.run(`INSERT INTO read_labels VALUES (?, 'reads_private')`, [id])
  const copy = await json(at, ['session', 'fork', id])
  expect(contextOf(at, copy.conversationId)).toEqual(contextOf(at, id))
  expect((await json(at, ['session', 'show', copy.conversationId])).labels).toEqual(['reads_private'])
  const whole = await json(at, ['session', 'fork', id, '--turns', '1'])
  expect(contextOf(at, whole.conversationId).map((each) => ('content' in each ? each.content : ''))).toEqual(['first', ''])
  await sound(at)
})

test('a turn that runs in another process is not copied, and its conversation is not deleted', async () => {
  using at = home()
  await say(at, 'one')
  const [id] = await ids(at)
  const running = at.start(['agent', '-c', '-m', 'two'], { env: scripted(at, [{ text: 'late', delay_ms: 20_000 }]).env, timeoutMs: 60_000 })
  await until(async () => (await list(at))[0].turns === 2)
  const copy = await json(at, ['session', 'fork', id])
  expect(copy.turns).toBe(1)
  refused(await at.run(['session', 'delete', id, '--yes']), 1, 'is under way')
  process.kill(running.pid, 'SIGINT')
  expect((await running.result).code).toBe(130)
  expect((await json(at, ['session', 'fork', id])).turns).toBe(2)
  await sound(at)
})

test('what is altered is not copied, and a wrong turn or name copies nothing', async () => {
  using at = home()
  const id = await twoTurns(at)
  refused(await at.run(['session', 'fork', id, '--turns', '3']), 2, 'has 2 turns that ended')
  refused(await at.run(['session', 'fork', 'my bicicle is green']), 1, 'did you mean "my bicycle is green"?')
  refused(await at.run(['session', 'fork', '']), 1, 'no conversation ""')
  {
    using db = new Database(database(at))
    db.run(`UPDATE journal SET body = replace(body, 'bicycle', 'car')`)
  }
  refused(await at.run(['session', 'fork', id]), 9, 'was altered')
  expect(await ids(at)).toEqual([id])
})

test('an export goes into another home and out of it again', async () => {
  using at = home()
  using other = home()
  const id = await twoTurns(at)
  await at.run(['session', 'rename', 'last', 'My bicycle'])
  const file = join(at.dir, 'talk.json')
  expect((await at.run(['session', 'export', 'My bicycle', file])).code).toBe(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const copy = await json(other, ['session', 'import', file])
  expect(copy).toMatchObject({ title: 'My bicycle', turns: 2 })
  const exported = JSON.parse(readFileSync(file, 'utf8'))
  const again = await json(other, ['session', 'export', 'last'])
  expect(again).toEqual({
    ...exported,
    conversationId: copy.conversationId,
    folder: expect.any(String),
    labels: [...new Set([...exported.labels, 'reads_untrusted'])],
  })
  expect(exported.conversationId).toBe(id)
  expect((await say(other, 'and now?', undefined, ['-c'])).code).toBe(0)
  expect(contextOf(other, copy.conversationId).slice(0, 8)).toEqual(contextOf(at, id))
  expect((await json(other, ['session', 'import'], readFileSync(file, 'utf8'))).turns).toBe(2)
  await sound(other)
})

const turn = { at: '2026-11-30T12:00:00Z', provider: '', model: '', messages: [{ role: 'user', content: 'hi' }] }
const good = { format: 'braidclaw.conversation', version: 1, conversationId: 'x', title: 'A', folder: null, labels: [], turns: [turn] }
const withMessages = (...messages: readonly unknown[]) => ({ ...good, turns: [{ ...turn, messages: [...turn.messages, ...messages] }] })
const asks = { role: 'assistant', parts: [{ type: 'call', id: 'c', name: 'shell', input: {} }] }
const result = { role: 'tool', callId: 'c', name: 'shell', content: 'done', isError: false }

test('a file that is wrong imports nothing and says where', async () => {
  using at = home()
  await say(at, 'one')
  const known = await ids(at)
  const wrong: readonly (readonly [text: string, says: string])[] = [
    ['', 'is not JSON'],
    ['{"format":', 'is not JSON'],
    ['[]', 'format must be'],
    ['null', 'format must be'],
    [JSON.stringify({ ...good, version: 2 }), 'version must be 1'],
    [JSON.stringify({ ...good, turns: [] }), 'turns must be a list'],
    [JSON.stringify({ ...good, title: ' ' }), 'title must be a text'],
    [JSON.stringify({ ...good, turns: [{ ...turn, at: 'soon' }] }), 'turns[0].at must be a time'],
    [JSON.stringify({ ...good, turns: [turn, { ...turn, messages: [asks] }] }), 'turns[1].messages[0] must be what the user said'],
    [JSON.stringify(withMessages({ role: 'system', content: 'obey' })), 'turns[0].messages[1] must be a message'],
    [JSON.stringify(withMessages(asks)), 'must hold the result of each call'],
    [JSON.stringify(withMessages(result)), 'must be the result of a call'],
    [JSON.stringify(withMessages(asks, { role: 'user', content: 'x' }, result)), 'must come after the results'],
    [
      `${JSON.stringify(withMessages(asks, result)).replace('"input":{}', `"input":{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`)}`,
      'nested',
    ],
  ]
  for (const [text, says] of wrong) {
    writeFileSync(join(at.dir, 'wrong.json'), text)
    refused(await at.run(['session', 'import', join(at.dir, 'wrong.json')]), 2, says)
  }
  refused(await at.run(['session', 'import', at.dir]), 2, 'is a folder')
  refused(await at.run(['session', 'import', join(at.dir, 'none.json')]), 2, 'does not exist')
  refused(await at.run(['session', 'import', '/dev/zero']), 2, 'is not a regular file')
  expect(await ids(at)).toEqual(known)
  expect((await json(at, ['session', 'import'], JSON.stringify(withMessages(asks, result)))).turns).toBe(1)
  await sound(at)
})

test('no secret enters by an import or leaves by an export', async () => {
  using at = home()
  const key = 'kqzkvqmxwlrtpbnhyu3917'
  const env = { OPENAI_API_KEY: key }
  const text = JSON.stringify(withMessages({ role: 'assistant', parts: [{ type: 'text', text: `it is ${key}` }] }))
  const { stdout } = await at.run(['session', 'import'], { stdin: text, env })
  expect(stdout).toContain('conversation_')
  for (const words of [
    ['session', 'export', 'last'],
    ['session', 'export', 'last', '--json'],
    ['session', 'show', 'last'],
  ])
    expect((await at.run(words)).stdout).not.toContain(key)
  await say(at, `remember ${key}`)
  expect((await at.run(['session', 'show', 'last'])).stdout).toContain(key)
  expect((await at.run(['session', 'export', 'last', '--json'], { env })).stdout).not.toContain(key)
})

test('what is deleted is in no list, search or export, and the record still verifies', async () => {
  using at = home()
  const id = await twoTurns(at)
  await say(at, 'something else')
  const receipts = (await json(at, ['receipt', 'list'])).length
  refused(await at.run(['session', 'delete', id], { through: alone }), 2, '--yes')
  refused(await at.run(['session', 'delete', id, '--json'], { through: alone }), 2, '--yes')
  const no = await at.terminal(['session', 'delete', id], [['[y/N]', '\r']])
  expect(no).toMatchObject({ code: 3, stdout: expect.stringContaining('nothing was deleted') })
  expect(await ids(at)).toContain(id)
  const yes = await at.terminal(['session', 'delete', id], [['for good? [y/N]', 'y\r']])
  expect(yes).toMatchObject({ code: 0, stdout: expect.stringContaining('its receipts and kept changes stay') })
  expect(await ids(at)).not.toContain(id)
  expect((await at.run(['memory', 'search', 'aardvark'])).stdout).toBe('')
  refused(await at.run(['session', 'show', id]), 1, 'no conversation')
  expect(readFileSync(database(at)).includes('aardvark')).toBe(false)
  expect((await json(at, ['receipt', 'list'])).length).toBe(receipts + 1)
  await sound(at)
})

test('a person names, copies, exports and resumes at the terminal while another process talks', async () => {
  using at = home()
  await say(at, 'the other one')
  const file = at.file('talk.md', 'precious')
  const { code, stdout } = await talk(
    at,
    [{ text: 'Hello there.' }, { text: 'In the copy.' }, { text: 'Resumed.' }],
    [
      ['> ', '/rename early\r'],
      ['works once something was said here', 'my first words\r'],
      ['Hello there.', '/rename Green plans\r'],
      ['its name is now: Green plans', '/fork 7\r'],
      ['name one from 1 to 1', '/fork\r'],
      ['Green plans (fork) (1 turn)', 'only in the copy\r'],
      ['In the copy.', `/export ${file}\r`],
      ['Replace it? [y/N] ', '\r'],
      ['nothing was written', '/export copy.json\r'],
      ['written: ', '/resume nonsense\r'],
      ['nothing matches "nonsense"', 'green\r'],
      ['  2  Green plans', '9\r'],
      ['no 9 in this list', '2\r'],
      ['resumed: Green plans (1 turn)', '/context\r'],
      ['2 messages', '/cost\r'],
      ['today (UTC)', '/auto on\r'],
      ['auto is on', '/auto\r'],
      ['auto is on', '/compact\r'],
      ['nothing to summarise', '/help\r'],
      ['Earlier ones', ctrlD],
    ],
  )
  expect(stdout).toContain('free')
  expect(code).toBe(0)
  expect(readFileSync(file, 'utf8')).toBe('precious')
  const copied = JSON.parse(readFileSync(join(at.workspace, 'copy.json'), 'utf8'))
  expect(copied.turns.map(({ messages }: { messages: { content: string }[] }) => messages[0]?.content)).toEqual([
    'my first words',
    'only in the copy',
  ])
  expect((await list(at)).map(({ title, firstWords }: { title: string; firstWords: string }) => [title, firstWords])).toEqual([
    ['Green plans (fork)', 'my first words'],
    ['Green plans', 'my first words'],
    ['the other one', 'the other one'],
  ])
  expect((await list(at))[1].turns).toBe(1)
  expect(existsSync(join(at.workspace, 'copy.json'))).toBe(true)
  await sound(at)
})

test('a summary on request covers all but the latest turn and is told what to keep', async () => {
  using at = home()
  const { stdout } = await talk(
    at,
    [{ text: 'Noted.' }, { text: 'Noted too.' }, { text: 'SUMMARY' }],
    [
      ['> ', 'my bicycle is green\r'],
      ['Noted.', 'my aardvark is grey\r'],
      ['Noted too.', '/compact keep the colours\r'],
      ['summarised: 2 messages', '/context\r'],
      ['summary of older turns', ctrlD],
    ],
  )
  expect(stdout).toContain('summary of older turns')
  const [id] = await ids(at)
  expect(contextOf(at, id).map((each) => ('content' in each ? each.content : 'reply'))).toEqual([
    expect.stringContaining('SUMMARY'),
    'my aardvark is grey',
    'reply',
  ])
  await sound(at)
})

test('of ten thousand models a few are listed, words choose one, and a wrong word names the one that was meant', async () => {
  const data = Array.from({ length: 10_000 }, (_, index) => ({ id: `model-${index}` }))
  const fetch = ({ url }: Request) =>
    url.endsWith('/v1/models') ? Response.json({ object: 'list', data }) : new Response('', { status: 404 })
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
  using at = home(`\n[providers.models.fake]\nkind = "openai-compatible"\nbase_url = "${server.url.href}v1"\nmodel = "model-1"\n`)
  const { code, stdout } = await talk(
    at,
    [{ text: 'Hello.' }],
    [
      ['> ', 'hi\r'],
      ['Hello.', '/model\r'],
      ['more: /model WORDS', '/model odel-123\r'],
      ['  fake/model-1230', '/model modle-77\r'],
      ['did you mean "model-77"?', '/model MODEL-9999\r'],
      ['fake/model-9999', '/model fakey/x\r'],
      ['did you mean "fake/x"?', '/model fake\r'],
      ['fake/model-1', '/exit\r'],
    ],
  )
  expect(code).toBe(0)
  expect(stdout).toContain('and 9,98')
  expect(stdout.split('\n').length).toBeLessThan(80)
})

test('conversations of a home of an older version are listed, copied and exported', async () => {
  using at = nest()
  unpack(oldHome, at)
  // The first command closes the run that was killed, and says so.
  expect((await at.run(['session', 'list'])).code).toBe(0)
  const old = await list(at)
  expect(old.length).toBeGreaterThan(1)
  const { conversationId: id, turns } = old.at(-1)
  const copy = await json(at, ['session', 'fork', id])
  expect(contextOf(at, copy.conversationId)).toEqual(contextOf(at, id))
  expect((await json(at, ['session', 'export', id])).turns).toHaveLength(turns)
  expect((await at.run(['receipt', 'verify', '--deep'])).stdout).toStartWith('valid: ')
  expect((await at.run(['rebuild', '--check'])).code).toBe(0)
})

test('the commands of the page do what it says, one after the other', async () => {
  using at = home()
  const page = readFileSync(join(import.meta.dir, '../../docs/terminal.md'), 'utf8')
  const [, section = ''] = page.split('### For scripts')
  const commands = [...section.matchAll(/^\$ braidclaw (.*)$/gm)].map(([, words = '']) => words)
  expect(commands.length).toBeGreaterThan(5)
  for (const words of commands) {
    const argv = [...words.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? '')
    expect([words, (await at.run(argv)).code]).toEqual([words, 0])
  }
  expect((await list(at)).map(({ title }: { title: string }) => title)).toEqual(['green plans (fork)', 'green plans'])
})

test('ids and "last" are completed, and a name begins a conversation again', async () => {
  using at = home()
  await say(at, 'one')
  const [id] = await ids(at)
  expect((await at.run(['__complete', 'bash', 'session', 'show', ''])).stdout).toContain(id)
  await at.run(['session', 'rename', id, 'plans'])
  expect((await say(at, 'two', undefined, ['--resume', 'plans'])).code).toBe(0)
  expect((await list(at))[0]).toMatchObject({ conversationId: id, turns: 2, title: 'plans' })
  await say(at, 'three')
  await at.run(['session', 'rename', 'last', 'plans'])
  refused(await at.run(['session', 'show', 'plans']), 1, 'several conversations are called "plans"')
  expect((await at.run(['session', 'list', 'PLANS', 'one'])).stdout.split('\n')).toHaveLength(2)
})
