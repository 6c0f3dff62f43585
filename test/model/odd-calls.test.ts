/** Calls as weaker models write them: what can mean only one thing is read, run and recorded as it was sent; everything else is refused. */

import { expect, test } from 'bun:test'
import { nest } from '../support/cli.ts'
import { sends, startFake } from '../support/vendor-fake.ts'

const event = (choice: object) => `data: ${JSON.stringify({ id: 'x', model: 'm', choices: [{ index: 0, ...choice }] })}\n\n`
const finished = (reason: string) => [event({ delta: {}, finish_reason: reason }), 'data: [DONE]\n\n']
const words = (text: string) => [event({ delta: { content: text } }), ...finished('stop')]
const piece = (index: number, more: object, args: string) =>
  event({ delta: { tool_calls: [{ index, ...more, function: { ...('id' in more ? { name: 'file_read' } : {}), arguments: args } }] } })
const call = (...args: readonly string[]) => [
  ...args.map((each, at) => piece(0, at === 0 ? { id: 'c1', type: 'function' } : {}, each)),
  ...finished('tool_calls'),
]

/** Plays these replies; returns the result of the call, and the lines of the journal. */
async function play(first: readonly string[]) {
  const fake = startFake((_, n) => sends(n === 0 ? first : words('Done.')))
  using at = nest()
  at.file('notes.txt', 'one\ntwo\nthree\n')
  at.config(`default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${fake.url}"\n`)
  const { code, stdout, stderr } = await at.run(['agent', '-m', 'read it'])
  const messages: { role: string; content: string }[] = JSON.parse(fake.asked[1]?.text ?? '{"messages":[]}').messages
  const { stdout: run } = await at.run(['run', 'show', 'last', '--json'])
  fake.stop()
  return { code, stdout, stderr, result: messages.find(({ role }) => role === 'tool')?.content ?? '', run, asked: fake.asked.length }
}

test.each<[string, readonly string[]]>([
  ['a number as a text', call('{"path":"notes.txt","limit":"1","offset":"2"}')],
  ['JSON in a JSON string', call(JSON.stringify('{"path":"notes.txt","limit":1,"offset":2}'))],
  ['an empty object before the real one', call('{}', '{"path":"notes.txt",', '"limit":1,"offset":2}')],
  [
    'the arguments under the next index',
    [piece(0, { id: 'c1' }, ''), piece(1, {}, '{"path":"notes.txt",'), piece(1, {}, '"limit":1,"offset":2}'), ...finished('tool_calls')],
  ],
])('%s is read', async (_, first) => {
  const { code, stdout, result } = await play(first)
  expect([code, stdout]).toEqual([0, 'Done.\n'])
  expect([result.includes('two'), result.includes('one'), result.includes('three')]).toEqual([true, false, false])
})

test('null is left out where a member may be absent', async () => {
  expect((await play(call('{"path":"notes.txt","limit":null,"offset":2}'))).result).toContain('three')
})

test('the record has what the model sent, and what was run', async () => {
  const { run } = await play(call('{"path":"notes.txt","limit":"1"}'))
  expect(run).toContain(JSON.stringify(JSON.stringify({ path: 'notes.txt', limit: '1' })))
  expect(run).toContain('"limit":1')
})

test.each([['{"path":"notes.txt","limit":"one"}'], ['{"path":"notes.txt"}{"path":"b"}']])(
  'what could mean something else is refused: %s',
  async (args) => {
    const { code, result } = await play(call(args))
    expect([code, result.includes('two')]).toEqual([3, false])
  },
)

test('a call that the model writes as text is an error that says how to ask without tools, and no answer', async () => {
  const { code, stdout, stderr } = await play(words('<tool_call>\n{"name":"file_read","arguments":{"path":"notes.txt"}}\n</tool_call>'))
  expect([code, stdout, stderr.includes('ask without tools: braidclaw -m far/m "…"')]).toEqual([8, '', true])
})

test('thinking between tags reaches neither stdout nor the next request as text', async () => {
  const { code, stdout, run } = await play(words('<think>Secretly.</think>\nHello.'))
  expect([code, stdout, run.includes('"thinking"')]).toEqual([0, 'Hello.\n', true])
})
