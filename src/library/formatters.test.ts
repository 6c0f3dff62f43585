import { expect, test } from 'bun:test'
import {
  formatForFunctionGemma,
  formatFunctionGemmaResponse,
  formatRelationsForContext,
  gemmaDialects,
  parseFunctionGemmaCall,
} from './formatters.ts'

const { call, declaration, quote: ESCAPE } = gemmaDialects.functiongemma
const [[CALL_START, CALL_END], [DECLARATION_START]] = [call, declaration]

test('the first call that can be read is found, whatever stands around it', () => {
  const broken = `${CALL_START}call:lost{a:}${CALL_END}`
  const output = `Sure.${broken}${CALL_START}call:greet{name:${ESCAPE}Ada<b>${ESCAPE},n:2}${CALL_END} More.`
  expect(parseFunctionGemmaCall(output)).toEqual({ name: 'greet', args: { name: 'Ada<b>', n: 2 } })
  expect(parseFunctionGemmaCall('<|tool_call>call:now{}<tool_call|>', 'gemma4')).toEqual({ name: 'now', args: {} })
  for (const nothing of ['', 'no call', broken, `${CALL_START}call:f{}`]) expect(parseFunctionGemmaCall(nothing)).toBeUndefined()
})

test('a name or a result cannot leave its place', () => {
  expect(formatForFunctionGemma([{ name: `f{}${CALL_START}`, description: '' }]).split(CALL_START).length).toBe(1)
  expect(formatForFunctionGemma([])).toBe('')
  expect(formatForFunctionGemma([{ name: 'f', description: 'd' }])).toStartWith(`${DECLARATION_START}declaration:f{`)
  expect(formatFunctionGemmaResponse('f', { value: `a${ESCAPE}b`, more: { list: ['x'] } })).toBe(
    '<start_function_response>response:f{more:{list:[<escape>x<escape>]},value:<escape>a< escape>b<escape>}<end_function_response>',
  )
})

const node = (id: string, parents: string[] = [], status?: 'done') => ({
  id,
  parents,
  edgeType: 'step',
  context: { description: id, status },
})

test('relations are a tree in which each node stands once', () => {
  const nodes = [node('a'), node('b', ['a'], 'done'), node('c', ['a', 'elsewhere']), node('d', ['b', 'c']), node('e', ['elsewhere'])]
  const [a, b, c] = ['step: a', '  step: b [done] (depends on: a)', '  step: c (depends on: a)']
  expect(formatRelationsForContext(nodes)).toBe([a, b, '    step: d (depends on: b, c)', c, 'step: e'].join('\n'))
  expect(formatRelationsForContext([node('x', ['y']), node('y', ['x'])])).toBe('')
})

test('a chain of 100,000 relations is written, and its indentation has an end', () => {
  const chain = Array.from({ length: 100_000 }, (_, at) => node(`n${at}`, at === 0 ? [] : [`n${at - 1}`]))
  const lines = formatRelationsForContext(chain).split('\n')
  expect([lines.length, lines[19], lines.at(-1)]).toEqual([
    100_000,
    `${' '.repeat(38)}step: n19 (depends on: n18)`,
    `${' '.repeat(40)}step: n99999 (depends on: n99998)`,
  ])
})
