import { expect, test } from 'bun:test'
import type { AgentEvent } from '../../../runtime/event.ts'
import { type Printed, printTo, wordsOf } from '../printer.ts'
import { type Folds, openFold, terminalRender } from './terminal-render.ts'

/** A render at a terminal of 60 columns with an area that shows `tail`. */
function shown({ color = false, showOutput = false } = {}) {
  const state = { printed: '', tail: [] as readonly string[] }
  const folds: Folds = {}
  const printer = printTo((text) => void Object.assign(state, { printed: state.printed + text }), true)
  const set = (_: string, rows: readonly Printed[]) => void Object.assign(state, { tail: rows.map(wordsOf) })
  const area = { set, hold: set, columns: () => 60, erase() {}, printed() {} }
  const status = { area: () => area, attach() {}, put() {}, columns: () => 60 }
  const render = terminalRender({ out: printer, err: printer, color, terminal: true, status, folds, showOutput })
  return { state, folds, show: (...events: AgentEvent[]) => events.forEach(render.show) }
}

const piece = (content: string, isPartial = true): AgentEvent => ({ type: 'text', content, isPartial })
const use = (toolName: string, input: unknown, toolCallId = 'a'): AgentEvent => ({ type: 'tool_use', toolCallId, toolName, input })
const result = (output: string, status: 'completed' | 'failed' = 'completed', toolCallId = 'a'): AgentEvent => ({
  type: 'tool_result',
  toolCallId,
  status,
  output,
})

test('the unfinished end stands in the tail, and every text is printed once', () => {
  const { state, show } = shown()
  show(piece('# He'), piece('llo\n\nwor'))
  expect([state.printed, state.tail]).toEqual(['Hello\n═════\n', ['', 'wor']])
  show(piece('ld'), piece('# Hello\n\nworld', false))
  expect([state.printed, state.tail]).toEqual(['Hello\n═════\n\nworld\n', []])
  show(piece('whole', false))
  expect(state.printed).toEndWith('world\nwhole\n')
})

test.each([
  ['shell', { command: 'npm test', timeout: 5 }, 'a\nb\n', 'completed', '· shell npm test timeout=5 · exit 0, 2 lines'],
  ['shell', { command: 'true' }, '(no output)', 'completed', '· shell true · exit 0'],
  ['shell', { command: 'false' }, 'exit code 1\nx\ny', 'failed', '✗ shell false · exit code 1, 2 lines'],
  ['file_list', { path: 'src' }, 'a\nb\nc', 'completed', '· file_list src · 3 paths'],
  ['file_edit', { path: 'a', old: 'x\ny\n', new: 'x\n1\n2\n' }, 'edited a', 'completed', '· file_edit a · +2 −1'],
  ['file_write', { path: 'a', content: 'x\ny\n' }, 'created a', 'completed', '· file_write a · 2 lines'],
  ['http', { url: 'http://a.b' }, 'Denied by the policy: no network', 'failed', '✗ http http://a.b · denied: no network'],
  ['time', {}, 'noon', 'completed', '· time · noon'],
  ['x\ny', 'odd', 'one\u001b[2J', 'completed', '· x y "odd" · one\\u001b[2J'],
] as const)('%s %j: one line', (name, input, output, status, line) => {
  const { state, show } = shown()
  show(use(name, input))
  expect([state.printed, state.tail]).toEqual(['', [line.slice(0, line.lastIndexOf(' · ')).replace('✗', '·')]])
  show(result(output, status))
  expect([state.printed, state.tail]).toEqual([`${line}\n`, []])
})

test('a line is cut at the columns; outputs and thoughts are opened later, a diff in colour', () => {
  const { state, folds, show } = shown({ color: true })
  expect(openFold(folds, 'output')).toBe('no output is folded\n')
  show({ type: 'thinking', content: 'first\nsecond' }, use('shell', { command: 'x'.repeat(500) }), result('--- a\n+++ b\n-old\n+new'))
  const [thought = '', call = ''] = Bun.stripANSI(state.printed).split('\n')
  expect([thought, Bun.stringWidth(call)]).toEqual(['∴ first second', 60])
  expect(wordsOf(openFold(folds, 'thinking'))).toBe('first\nsecond\n')
  expect(openFold(folds, 'output')).toContainEqual({ mark: 'green' })
  expect(wordsOf(openFold(folds, 'output'))).toEndWith('  --- a\n  +++ b\n  -old\n  +new\n')
})

test('a question stands alone, and an output is printed when that is asked for', () => {
  const { state, show } = shown({ showOutput: true })
  show(use('shell', { command: 'ls' }), { type: 'approval_gate', gateId: 'g', toolName: 'shell', input: {} })
  expect(state.tail).toEqual([])
  show(result('a.txt\nb.txt'))
  expect(state.printed).toBe('· shell ls · exit 0, 2 lines\n  a.txt\n  b.txt\n')
})
