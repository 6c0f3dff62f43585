import { describe, expect, test } from 'bun:test'
import { plainFiles } from './fixture.ts'
import { createTools } from './list.ts'
import { spawnPlain } from './process.ts'

const refusal = { ok: false, message: 'no' } as const
const tools = createTools({
  files: {
    ...plainFiles('/'),
    readText: () => refusal,
    list: () => refusal,
    writeText: () => refusal,
    editText: () => refusal,
    readBytes: () => refusal,
    delete: async () => refusal,
  },
  spawn: spawnPlain,
  planOf: () => undefined,
  env: {},
  shellTimes: { usualS: 15, longestS: 600 },
  get: async () => refusal,
  search: () => [],
  now: () => 0,
  maxOutputBytes: 1_000,
  shownBytes: () => 1_000,
  result: () => ({ ok: false, message: 'none' }),
})

/** The tools of a fresh clone, in the order in which the model sees them; further ones may stand before, between and behind them. */
const limits = [
  'time low 30',
  'file_list low 30',
  'file_read low 30',
  'file_write medium 30',
  'file_edit medium 30',
  'file_delete medium 30',
  'search low 30',
  'shell medium 15',
  'shell_output low 30',
  'shell_stop low 30',
  'http low 20',
  'memory_search low 30',
  'ask_user low 600',
]
const thirteen = tools.filter(({ name }) => limits.some((line) => line.startsWith(`${name} `)))

describe('the thirteen tools', () => {
  test('are there in this order, with these limits', () => {
    expect(thirteen.map(({ name, risk, timeoutMs }) => `${name} ${risk} ${timeoutMs / 1_000}`)).toEqual(limits)
  })

  test('begin every request with the same bytes, which vendors keep for the next one', () => {
    const specs = thirteen.map(({ name, description, parameters }) => ({ name, description, parameters }))
    expect(new Bun.CryptoHasher('sha256').update(JSON.stringify(specs)).digest('hex')).toBe(
      '31b9b983a503592a5d9e0250b7a365c5910d121a93a9f9ee1982342b2108d943',
    )
  })

  test('take at most 3.85 KB of the first request', () => {
    const specs = thirteen.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }))
    expect(Buffer.byteLength(JSON.stringify(specs))).toBeLessThanOrEqual(3_850)
  })

  test('take no unknown arguments', () => {
    for (const { parameters } of tools) {
      expect(parameters.additionalProperties).toBe(false)
      for (const name of parameters.required ?? []) expect(Object.keys(parameters.properties ?? {})).toContain(name)
    }
  })

  test('tell the gate everything they touch, for any input', () => {
    const touched = (input: object) => Object.fromEntries(thirteen.map(({ name, touches }) => [name, touches({ ...input })]))
    const path = 'p'
    expect(touched({ path, command: 'c', url: 'u', method: 'POST' })).toEqual({
      time: [],
      file_list: [{ kind: 'path', path, access: 'read' }],
      file_read: [{ kind: 'path', path, access: 'read' }],
      file_write: [{ kind: 'path', path, access: 'write' }],
      file_edit: [
        { kind: 'path', path, access: 'read' },
        { kind: 'path', path, access: 'write' },
      ],
      file_delete: [{ kind: 'path', path, access: 'write' }],
      search: [{ kind: 'path', path, access: 'read' }],
      shell: [{ kind: 'command', command: 'c' }],
      shell_output: [],
      shell_stop: [],
      http: [{ kind: 'url', url: 'u', method: 'POST' }],
      memory_search: [],
      ask_user: [],
    })
    expect(touched({}).file_list).toEqual([{ kind: 'path', path: '.', access: 'read' }])
    for (const { touches } of tools) expect(() => touches({ path: 1, command: null, url: [], method: {} })).not.toThrow()
  })
})
