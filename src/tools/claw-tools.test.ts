import { describe, expect, test } from 'bun:test'
import { createClaw } from './claw-tools.ts'
import { context } from './fixture.ts'

const time = { name: 'get_time', description: 'The time.', input_schema: { type: 'object', properties: {} } }

/** A claw with these answers, keyed by the line that it reads. */
function claw(answers: { readonly [line: string]: string | { readonly why: string } }, builtIn: readonly string[] = ['shell']) {
  const asked: string[] = []
  const look = createClaw({
    builtIn,
    riskOf: (name) => (name === 'get_time' ? 'low' : 'medium'),
    maxOutputBytes: 1_000,
    ask: async (line) => {
      asked.push(line)
      const answer = answers[line.trimEnd()] ?? 'unknown request'
      return typeof answer === 'string' ? { ok: true, answer } : { ok: false, why: answer.why }
    },
  })
  return { asked, look: () => look(new AbortController().signal) }
}

describe('what is not offered', () => {
  test('a claw that is silent, or answers no list to either word, has no tools and says why', async () => {
    const silent = claw({ list_tools: { why: 'unread' }, __list_tools__: { why: 'unread' } })
    expect(await silent.look()).toEqual({ tools: [], refused: ['the claw is silent (unread); is its bridge running?'], silent: true })
    expect(silent.asked).toEqual(['__list_tools__\n', 'list_tools\n'])
    const dumb = await claw({}).look()
    expect(dumb.silent).toBe(false)
    expect(dumb.refused[0]).toContain('"unknown request"')
  })

  test('names of built-in tools, names twice, and what is no description are refused one by one; the others stay', async () => {
    const { tools, refused } = await claw({
      list_tools: JSON.stringify([
        { ...time, name: 'shell' },
        time,
        time,
        { name: 'a b' },
        7,
        { ...time, name: 'x', input_schema: { type: 'array' } },
      ]),
    }).look()
    expect(tools.map(({ name }) => name)).toEqual(['get_time'])
    expect(refused).toEqual([
      expect.stringContaining('"shell" has the name of a built-in tool'),
      expect.stringContaining('"get_time" twice'),
      expect.stringContaining('calls itself "a b"'),
      expect.stringContaining('calls itself'),
      expect.stringContaining('parameters'),
    ])
  })

  test('a call that nobody took did not run; one without an answer has an unknown outcome', async () => {
    const calls = { list_tools: JSON.stringify([time]) }
    const [unread] = (await claw({ ...calls, 'get_time\t{}': { why: 'unread' } }).look()).tools
    expect(await unread?.invoke({}, context())).toMatchObject({ success: false, error: expect.stringContaining('did not run') })
    const [late] = (await claw({ ...calls, 'get_time\t{}': { why: 'timeout' } }).look()).tools
    expect(await late?.invoke({}, context())).toMatchObject({ success: false, error: expect.stringContaining('unknown') })
  })
})

test.each(['unknown tool', { why: 'cancelled' }])(
  'a claw that knows only the other word, and says %j to ours, is asked with that from then on',
  async (said) => {
    const other = claw({ __list_tools__: said, list_tools: JSON.stringify([time]) })
    expect((await other.look()).tools.map(({ name, risk }) => [name, risk])).toEqual([['get_time', 'low']])
    expect((await other.look()).tools).toHaveLength(1)
    expect(other.asked).toEqual(['__list_tools__\n', 'list_tools\n', 'list_tools\n'])
  },
)

test('the same list is the same array; another list is another, with another digest', async () => {
  const answers: { [line: string]: string } = { list_tools: JSON.stringify([time]) }
  const one = claw(answers)
  const first = await one.look()
  expect((await one.look()).tools).toBe(first.tools)
  answers.list_tools = JSON.stringify([{ ...time, description: 'Another.' }])
  const second = await one.look()
  expect(second.tools).not.toBe(first.tools)
  expect(second.tools[0]?.sha256).not.toBe(first.tools[0]?.sha256)
})

test('arguments go as one line of JSON, whatever they hold, and the answer is the result', async () => {
  const schema = { type: 'object', properties: { text: { type: 'string' } } }
  const one = claw({
    list_tools: JSON.stringify([{ name: 'say', description: 'Says it.', input_schema: schema }]),
    'say\t{"text":"a\\n\\tb"}': 'line 1\nline 2',
  })
  const [say] = (await one.look()).tools
  expect(say?.risk).toBe('medium')
  expect(await say?.invoke({ text: 'a\n\tb' }, context())).toMatchObject({ success: true, output: 'line 1\nline 2' })
})
