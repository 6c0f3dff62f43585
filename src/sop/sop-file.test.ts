import { describe, expect, test } from 'bun:test'
import { toolKinds } from '../tools/list.ts'
import { readSop, stagesOf } from './sop-file.ts'
import { fill, referencesIn } from './template.ts'

const tools = new Map(toolKinds.map((kind) => [kind.name, kind]))
const step = (id: string, more = '') => `[[steps]]\nid = "${id}"\nkind = "agent"\nprompt = "Go."\n${more}\n`
const toolStep = (id: string, tool: string, args: string, more = '') =>
  `[[steps]]\nid = "${id}"\nkind = "tool"\ntool = "${tool}"\nargs = ${args}\n${more}\n`

const problemsOf = async (steps: string, top = '') => {
  const { problems } = await readSop({ text: `name = "x"\n${top}\n${steps}`, tools })
  return problems.map(({ line, column, field, message }) => `${line}:${column} ${field} ${message}`)
}

describe('a wrong file is refused with the place and the reason', () => {
  test.each<[string, string, string | RegExp]>([
    ['an output of no step', `[outputs]\nx = "{{ steps.b.output }}"\n${step('a')}`, /^4:1 outputs\.x "b" is not a step with an output/],
    [
      'an output of no input',
      `[outputs]\nx = "{{ inputs.b }}"\n${step('a')}`,
      /^4:1 outputs\.x names the input "b", which is not in \[inputs\]/,
    ],
    ['an output that is a number', `[outputs]\nx = 3\n${step('a')}`, /^4:1 outputs\.x is a text; got 3/],
    ['an output with a wrong name', `[outputs]\nX = "a"\n${step('a')}`, /outputs\.X is named with small letters/],
    ['an empty budget', `[budget]\n${step('a')}`, /^3:1 budget limits nothing/],
    ['a budget of nothing', `[budget]\nusd = -1\n${step('a')}`, /^4:1 budget\.usd is a number of US dollars above 0; got -1/],
    ['half a token', `[budget]\ntokens = 0.5\n${step('a')}`, /^4:1 budget\.tokens is a whole number/],
    [
      'a trigger of no kind',
      `[triggers]\ninput = "a"\n${step('a')}`,
      /triggers begins by exactly one of schedule, message, webhook; it has none/,
    ],
    ['a trigger of two kinds', `[[triggers]]\nschedule = "@daily"\nmessage = "go"\n${step('a')}`, /it has schedule and message/],
    [
      'a wrong cron expression',
      `[[triggers]]\nschedule = "61 * * * *"\n${step('a')}`,
      /^4:1 triggers\.0\.schedule "61 \* \* \* \*": value out of range/,
    ],
    [
      'a wrong zone',
      `[[triggers]]\nschedule = "@daily"\nzone = "Europe/Berln"\n${step('a')}`,
      /^5:1 triggers\.0\.zone "Europe\/Berln" is not a time zone; did you mean/,
    ],
    [
      'a zone of a message',
      `[[triggers]]\nmessage = "go"\nzone = "UTC"\n${step('a')}`,
      /triggers\.0\.zone does not belong to a trigger by message/,
    ],
    ['a message that looks like a command', `[[triggers]]\nmessage = "/sop x"\n${step('a')}`, /triggers\.0\.message is one line/],
    ['a chat without an address', `[[triggers]]\nschedule = "@daily"\nchannel = "fifo"\n${step('a')}`, /channel needs both channel and to/],
    ['an input that is missing', `[[triggers]]\nwebhook = "t"\ninput = "a"\n${step('a')}`, /triggers\.0\.input names the input "a"/],
    [
      'an input without a value',
      `[[triggers]]\nwebhook = "t"\n[inputs.a]\n${step('a')}`,
      /triggers\.0\.webhook gives no value to the input "a"/,
    ],
    [
      'an unknown key of a trigger',
      `[[triggers]]\nwebhok = "t"\n${step('a')}`,
      /triggers\.0\.webhok is not a field of this table; did you mean "webhook"/,
    ],
    [
      'arguments that do not fit the tool',
      toolStep('a', 'file_list', '{ pth = "." }'),
      /^7:1 steps\.0\.args do not fit the tool file_list: .*did you mean "path"/,
    ],
    ['a missing argument', toolStep('a', 'file_write', '{ path = "x" }'), /"content" is missing/],
    [
      'an unknown field',
      step('a', 'on_failur = "abort"'),
      '7:1 steps.0.on_failur is not a field of this table; did you mean "on_failure"?',
    ],
    ['another way to fail', step('a', 'on_failure = "stop"'), /on_failure is one of abort, continue; got "stop"/],
    [
      'a kind that does not exist',
      '[[steps]]\nid = "a"\nkind = "tol"\ntool = "time"\n',
      /kind is one of tool, agent, approval; did you mean "tool"/,
    ],
    [
      'content of a later step',
      `${toolStep('a', 'file_write', '{ path = "x", content_from = "b" }')}${step('b')}`,
      /"b" comes later; only an earlier step has an output/,
    ],
    [
      'content of no step',
      `${step('one')}${toolStep('a', 'file_write', '{ path = "x", content_from = "on" }')}`,
      /"on" is not a step; did you mean "one"/,
    ],
    [
      'content of an approval',
      `[[steps]]\nid = "ok"\nkind = "approval"\nprompt = "?"\n${toolStep('a', 'file_write', '{ path = "x", content_from = "ok" }')}`,
      /"ok" is an approval, which has no output/,
    ],
    ['content of itself', toolStep('a', 'file_write', '{ path = "x", content_from = "a" }'), /"a" is this step itself/],
    [
      'content and content_from',
      `${step('one')}${toolStep('a', 'file_write', '{ path = "x", content = "y", content_from = "one" }')}`,
      /stands beside content_from/,
    ],
    [
      'a circle',
      `${step('a', 'when = { step = "c", contains = "x" }')}${step('b', 'when = { step = "a", contains = "x" }')}${step('c', 'when = { step = "b", contains = "x" }')}`,
      /steps\.0\.when "c" waits for this step, so the two wait in a circle/,
    ],
    [
      'a step that never runs',
      `${step('a')}${step('b', 'when = { step = "a", state = "failed" }')}`,
      /waits for a failure of "a", which ends the run, so this step never runs/,
    ],
    [
      'a step that is never skipped',
      `${step('a')}${step('b', 'when = { step = "a", state = "skipped" }')}`,
      /never is without a "when", so this step never runs/,
    ],
    [
      'a neighbour of the same group',
      `${step('a', 'parallel = "p"')}${step('b', 'parallel = "p"\nwhen = { step = "a", contains = "x" }')}`,
      /"a" runs at the same time/,
    ],
    ['a group in two places', `${step('a', 'parallel = "p"')}${step('b')}${step('c', 'parallel = "p"')}`, /"p" is used above/],
    [
      'a template in a command',
      `${step('a')}${toolStep('b', 'shell', '{ command = "echo {{ steps.a.output }}" }')}`,
      /the shell would run what they insert/,
    ],
    ['a template of no step', step('a', '').replace('Go.', '{{ steps.nobody.output }}'), /steps\.0\.prompt "nobody" is not a step/],
    ['a template of no input', step('a', '').replace('Go.', '{{ inputs.city }}'), /names the input "city", which is not in \[inputs\]/],
    [
      'a condition of two tests',
      `${step('a')}${step('b', 'when = { step = "a", contains = "x", equals = "y" }')}`,
      /when is a table such as/,
    ],
    ['a date', toolStep('a', 'file_list', '{ path = 2020-01-01 }'), /has a date/],
    ['a broken line', 'steps = [', /^3:9 .*not valid TOML/],
    ['no steps', '', /steps is missing; it is a list of tables/],
  ])('%s', async (_, steps, expected) => {
    const found = await problemsOf(steps)
    expect(found.some((line) => (typeof expected === 'string' ? line === expected : expected.test(line)))).toBe(true)
  })

  test('a name that is not that of the folder', async () => {
    const { problems } = await readSop({ text: `name = "x"\n${step('a')}`, folder: 'y', tools })
    expect(problems).toMatchObject([{ line: 1, column: 1, field: 'name', message: 'is the name of the folder, "y"; got "x"' }])
  })
})

test('ten thousand steps are read in a second, and one more is refused', async () => {
  const text = (count: number) => `name = "x"\n${Array.from({ length: count }, (_, at) => toolStep(`s${at}`, 'time', '{}')).join('')}`
  const begin = performance.now()
  const { sop, problems } = await readSop({ text: text(10_000), tools })
  expect([sop.steps.length, problems, performance.now() - begin < 5_000]).toEqual([10_000, [], true])
  expect((await readSop({ text: text(10_001), tools })).problems).toMatchObject([
    { field: 'steps', message: 'are 10001; the limit is 10000' },
  ])
})

test('neighbours of a group are one stage', async () => {
  const { sop } = await readSop({
    text: `name = "x"\n${step('a')}${step('b', 'parallel = "p"')}${step('c', 'parallel = "p"')}${step('d')}`,
    tools,
  })
  expect(stagesOf(sop.steps).map((stage) => stage.map(({ id }) => id))).toEqual([['a'], ['b', 'c'], ['d']])
})

test('what a template inserts is not read as a template again, and other braces stay', () => {
  const values: { readonly [name: string]: string } = { a: '{{ inputs.b }} $1 $&', b: 'secret' }
  expect(
    fill<string>('{{inputs.a}}|{{ inputs.b }}|{{mustache}}|{{ steps.s.output }}', ({ kind, name }) =>
      kind === 'steps' ? '{{inputs.b}}' : (values[name] ?? ''),
    ),
  ).toBe('{{ inputs.b }} $1 $&|secret|{{mustache}}|{{inputs.b}}')
  expect(referencesIn({ a: ['{{inputs.x}}', { b: '{{ steps.y.output }}' }] })).toEqual([
    { kind: 'inputs', name: 'x' },
    { kind: 'steps', name: 'y' },
  ])
})
