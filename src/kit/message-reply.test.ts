import { describe, expect, test } from 'bun:test'
import { type BrainReply, readReply, readTools } from './wire.ts'

const read = (value: unknown): BrainReply => readReply(JSON.stringify(value))
const nothing = { uses: [], text: '' }

describe('an answer that is none', () => {
  test.each([
    ['text that is no JSON', '<html>502</html>'],
    ['nothing', ''],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number', '1'],
    ['a message without content', '{"role":"assistant"}'],
    ['content that is text', '{"content":"hello"}'],
  ])('is the error "fatal": %s', (_, frame) => {
    expect(readReply(frame)).toMatchObject({ ...nothing, error: 'fatal' })
  })

  test.each([
    ['an empty message', '{"content":[]}'],
    ['blocks that are no objects', '{"content":[null,1,"text",[{"text":"x"}]]}'],
    ['a text that is no text', '{"error":null,"content":[{"type":"text","text":{"text":"x"}}]}'],
  ])('is an empty answer, and no error: %s', (_, frame) => {
    expect(readReply(frame)).toMatchObject({ ...nothing, error: 0 })
  })

  test("keeps the vendor's own error", () => {
    const error = { type: 'overloaded_error', message: '…' }
    expect(read({ type: 'error', error, content: [{ type: 'text', text: 'x' }] })).toMatchObject({ ...nothing, error })
  })

  test("keeps the bridge's own word", () => {
    expect(readReply('{"error":"timeout"}')).toMatchObject({ ...nothing, error: 'timeout' })
    expect(readReply(' {"error":"fatal"}\r')).toMatchObject({ ...nothing, error: 'fatal' })
  })
})

describe('text', () => {
  test('is found by structure: words that look like members do not count', () => {
    const text = 'he said "error": {"content":[{"text":"no"}]} \\" \u0041'
    expect(read({ error_count: 0, meta: { error: 'inner', content: [{ text: 'no' }] }, content: [{ type: 'text', text }] })).toMatchObject({
      uses: [],
      text,
    })
  })

  test('is that of all blocks which have some', () => {
    const content = [{ type: 'thinking', thinking: 'hm' }, { type: 'text', text: 'a' }, { type: 'tool_use' }, { type: 'text', text: 'b' }]
    expect(read({ content, stop_reason: 'end_turn' })).toMatchObject({ uses: [], text: 'ab' })
  })
})

describe('tools', () => {
  const use = { type: 'tool_use', id: 't1', name: 'get_time', input: { zone: 'UTC' } }

  test('are not used when the reply did not stop for them: the block may be cut off', () => {
    expect(read({ content: [{ type: 'text', text: 'a' }, use], stop_reason: 'max_tokens' })).toMatchObject({ uses: [], text: 'a' })
    expect(read({ content: [{ ...use, type: 'text' }], stop_reason: 'tool_use' })).toMatchObject({ uses: [] })
  })

  test('are left out when they have no id or no name', () => {
    const content = [{ ...use, id: undefined }, { ...use, name: 3 }, use]
    expect(read({ content, stop_reason: 'tool_use' })).toMatchObject({ uses: [{ id: 't1' }] })
  })

  test('are all asked for, and the content goes back as it came', () => {
    const content = [{ type: 'text', text: 'see' }, use, { ...use, id: 't2', input: null, extra: 1 }]
    expect(read({ content, stop_reason: 'tool_use' })).toMatchObject({ content, uses: [use, { id: 't2', name: 'get_time', input: null }] })
  })
})

test('a list of tools is a JSON array and nothing else', () => {
  expect(readTools('[{"name":"a"}]\n')).toEqual([{ name: 'a' }])
  expect(['', 'error: unknown', '{"tools":[]}', '"[]"', '[', 'null'].map(readTools)).toEqual(Array(6).fill(undefined))
})
