import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { callLine, escapeText, fieldsOf, messageLine, readClawRequest, readMessage, unescapeText } from './wire.ts'

const anyText = fc.string({ unit: fc.constantFrom('a', '\\', 'n', 't', '\n', '\t', '\r', 'é', '😀'), maxLength: 30 })

describe('a line that is no message', () => {
  test.each([
    ['', 'no tab'],
    ['hello', 'no tab'],
    ['\thello', 'no channel'],
    ['\t', 'no channel'],
    ['7\t', 'no text'],
    ['7\t \r', 'no text'],
    ['7\t\\n\\t ', 'no text'],
  ] as const)('%j has %s', (line, problem) => {
    expect(readMessage(line)).toEqual({ ok: false, problem })
  })

  test.each(['', 'a\tb', 'a\nb'])('is not written: channel %j', (channel) => {
    expect(() => messageLine({ channel, text: 'x' })).toThrow('no line can carry it')
  })
})

describe('a message', () => {
  test('keeps what a shell wrote: escapes undone, further tabs in the text, a carriage return at the end left out', () => {
    const line = String.raw`1234567890123456789	I'm fine\nC:\\new\tx\q`
    expect(readMessage(`${line}\tend\r`)).toEqual({ ok: true, channel: '1234567890123456789', text: "I'm fine\nC:\\new\tx\\q\tend" })
  })

  test('is one line, with exactly the escapes of the wire', () => {
    expect(messageLine({ channel: '12', text: 'a\nb\tc\\d\re' })).toBe(`12\t${String.raw`a\nb\tc\\d`}\re\n`)
  })

  test('arrives as it was written, but for a carriage return at its end', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const line = messageLine({ channel: 'x', text })
        expect(line.indexOf('\n')).toBe(line.length - 1)
        if (text.trim() !== '') expect(readMessage(line.slice(0, -1))).toEqual({ ok: true, channel: 'x', text: text.replace(/\r$/, '') })
      }),
    )
  })

  test('escapes are undone from left to right, each once', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(unescapeText(escapeText(text))).toBe(text)
        const decoded = { n: '\n', t: '\t', '\\': '\\' }
        expect(unescapeText(text)).toBe(text.replace(/\\([nt\\])/g, (_, code: keyof typeof decoded) => decoded[code]))
      }),
    )
  })
})

describe('a request to the claw', () => {
  test.each([
    ['', 'no tab'],
    ['list_tools ', 'no tab'],
    ['get_time', 'no tab'],
    ['\t{}', 'no name'],
  ] as const)('%j has %s', (line, problem) => {
    expect(readClawRequest(line)).toEqual({ type: 'problem', problem })
  })

  test.each(['list_tools', '__list_tools__', 'list_tools\r'])('%j asks for the tools', (line) => {
    expect(readClawRequest(line)).toEqual({ type: 'list' })
  })

  test('names a tool and its input, even one called like the question for tools', () => {
    expect(readClawRequest('get_time\t{"a":1}\r')).toEqual({ type: 'call', name: 'get_time', input: '{"a":1}' })
    expect(readClawRequest('list_tools\t{}')).toEqual({ type: 'call', name: 'list_tools', input: '{}' })
    expect(readClawRequest('x\ta\tb')).toEqual({ type: 'call', name: 'x', input: 'a\tb' })
  })

  test('is one line whatever the name and the input are', () => {
    expect(callLine('get_time', { zone: 'a\tb\n' })).toBe(`get_time\t${String.raw`{"zone":"a\tb\n"}`}\n`)
    expect(callLine('x\nshutdown\t{}', {})).toBe(`${String.raw`x\nshutdown\t{}`}\t{}\n`)
  })
})

test('null has no members, nor has text those of an object', () => {
  expect([fieldsOf(null).error, fieldsOf(undefined).error, fieldsOf('error').error, fieldsOf({ error: 1 }).error]).toEqual([
    undefined,
    undefined,
    undefined,
    1,
  ])
})
