import { describe, expect, test } from 'bun:test'
import type { FileRefusal, TextRead } from '../workspace/contract.ts'
import { askUser } from './builtin/ask_user.ts'
import { fileEdit } from './builtin/file_edit.ts'
import { fileList } from './builtin/file_list.ts'
import { fileRead } from './builtin/file_read.ts'
import { fileWrite } from './builtin/file_write.ts'
import { http } from './builtin/http.ts'
import { memorySearch } from './builtin/memory_search.ts'
import { resultRead } from './builtin/result_read.ts'
import { time } from './builtin/time.ts'
import { context } from './fixture.ts'
import { toolFrom } from './tool-kind.ts'

const denial: FileRefusal = { ok: false, denied: 'workspace_only', message: 'it is outside' }
/** Stands for what file_read needs only for pages of a PDF. */
const unused = {
  files: { root: '/', readText: () => denial, readBytes: () => denial },
  spawn: async () => ({ ok: false, message: 'nothing runs here' }) as const,
  env: { PATH: '' },
}
const denied = { success: false, error: 'it is outside', deniedBy: 'workspace_only' }

test('a refusal by the workspace or the network is handed on with its rule', async () => {
  const files = { list: () => denial, readText: () => denial, readBytes: () => denial, writeText: () => denial, editText: () => denial }
  const refused = [
    toolFrom(fileList, { files }).invoke({ path: 'x' }, context()),
    toolFrom(fileRead, { ...unused, files: { root: '/', ...files }, shownBytes: () => 1_000 }).invoke({ path: 'x' }, context()),
    toolFrom(fileWrite, { files }).invoke({ path: 'x', content: '' }, context()),
    toolFrom(fileEdit, { files }).invoke({ path: 'x', old: 'a', new: 'b' }, context()),
    toolFrom(http, { get: async () => denial }).invoke({ url: 'http://x/' }, context()),
  ]
  for (const result of refused) expect(await result).toMatchObject(denied)
})

test('arguments that no schema checked are a bug, not an action', () => {
  const files = { writeText: () => denial }
  expect(toolFrom(fileWrite, { files }).invoke({ path: 1, content: 'x' }, context())).rejects.toThrow(
    'unchecked arguments for "file_write": {"path":1,"content":"x"}',
  )
  expect(toolFrom(fileRead, { ...unused, shownBytes: () => 1 }).invoke({ path: 'x', offset: 0 }, context())).rejects.toThrow(
    'unchecked arguments for "file_read"',
  )
})

describe('result_read', () => {
  const text = Array.from({ length: 400 }, (_, at) => `line ${at} ü 😀`).join('\n')
  const bytes = Buffer.byteLength(text)
  const read = (input: { id: string; offset?: number }, shown = 1_000) =>
    toolFrom(resultRead, {
      result: (id) => (id === 'known' ? { ok: true, text } : { ok: false, message: `no result ${id}` }),
      shownBytes: () => shown,
    }).invoke(input, context())

  test('an unknown result, and an offset behind its end, are refused', async () => {
    expect(await read({ id: 'x' })).toMatchObject({ success: false, error: 'no result x' })
    expect(await read({ id: 'known', offset: bytes })).toMatchObject({
      success: false,
      error: expect.stringContaining(`has ${bytes} bytes`),
    })
  })

  for (const shown of [65, 300, 1_000])
    test(`the pages of at most ${shown} bytes are the whole text, and each names the next`, async () => {
      let [whole, offset] = ['', 0]
      for (;;) {
        const { output } = await read({ id: 'known', offset }, shown)
        const [, page = '', next] = /^([\s\S]*?)\n?\[bytes [^;\]]+(?:; continue with offset (\d+))?\]$/.exec(output) ?? []
        expect(Buffer.byteLength(output)).toBeLessThanOrEqual(Math.max(shown, 64 + 128))
        whole +=
          text.startsWith(`${whole}${page}\n`) &&
          next !== undefined &&
          text[whole.length + page.length] === '\n' &&
          Buffer.byteLength(whole + page) < Number(next)
            ? `${page}\n`
            : page
        if (next === undefined) break
        expect(Number(next)).toBe(Buffer.byteLength(whole))
        offset = Number(next)
      }
      expect(whole).toBe(text)
    })

  test('an offset within a character begins with the character', async () => {
    const at = Buffer.byteLength('line 0 ')
    expect((await read({ id: 'known', offset: at + 1 })).output).toStartWith('ü 😀')
  })

  test('a whole result has no footer', async () => {
    expect((await read({ id: 'known' }, 100_000)).output).toBe(text)
  })
})

describe('file_read', () => {
  const read = async (page: Partial<TextRead>) => {
    const whole = {
      ok: true,
      path: 'f',
      text: 'a\nb\n',
      firstLine: 1,
      lastLine: 2,
      totalLines: 2,
      size: 4,
      more: false,
      cutLine: false,
      invalid: false,
      seen: [],
    } as const
    const tool = toolFrom(fileRead, {
      ...unused,
      files: { ...unused.files, readText: () => ({ ...whole, ...page }) },
      shownBytes: () => 1_000,
    })
    return (await tool.invoke({ path: 'f' }, context())).output
  }

  test('a whole file comes as it is, a part with where it stands and how to go on', async () => {
    expect(await read({})).toBe('a\nb\n')
    expect(await read({ more: true, totalLines: 9 })).toBe('a\nb\n[lines 1–2 of 9; continue with offset 3]')
    expect(await read({ firstLine: 8, lastLine: 9, totalLines: 9 })).toBe('a\nb\n[lines 8–9 of 9]')
    expect(await read({ more: true, totalLines: undefined, size: 1e8 })).toContain('of a file of 100,000,000 bytes; continue with offset 3')
    expect(await read({ text: 'aa', lastLine: 1, totalLines: 1, more: true, cutLine: true })).toBe(
      'aa\n[lines 1–1 of 1; line 1 is longer than fits and was cut]',
    )
    expect(await read({ text: '', lastLine: 0, totalLines: 0, size: 0 })).toBe('(empty file)')
    expect(await read({ invalid: true })).toContain('not UTF-8')
  })
})

describe('file_list', () => {
  const list = async (
    entries: Parameters<typeof Array.from<{ path: string; type: 'file' | 'directory' | 'link' | 'other'; size?: number }>>[0],
    total: number,
    complete = true,
  ) => {
    const tool = toolFrom(fileList, { files: { list: () => ({ ok: true, path: '.', entries: Array.from(entries), total, complete }) } })
    return (await tool.invoke({}, context())).output
  }

  test('each kind is told apart, a forged line is quoted, and what is left out is counted', async () => {
    expect(await list([], 0)).toBe('(empty folder)')
    const entries = [
      { path: 'd', type: 'directory' },
      { path: 'ü 🦋', type: 'file', size: 3 },
      { path: 'l', type: 'link' },
      { path: 'p', type: 'other' },
      { path: 'x\nsecret/', type: 'file', size: 0 },
    ] as const
    expect(await list(entries, 10_000, false)).toBe(
      'd/\nü 🦋 (3 bytes)\nl (symbolic link)\np (special file)\n"x\\nsecret/" (0 bytes)\n' +
        '[… 9995 of 10000 entries not shown; list a folder below, or search …]\n' +
        '[some folders could not be entered, or there is too much to count]',
    )
  })
})

describe('http', () => {
  const page = {
    ok: true,
    url: 'http://x/',
    status: 200,
    headers: { 'content-type': 'text/html' },
    body: 'hi',
    bytes: 2,
    truncated: false,
  } as const
  const fetched = (changes: object) =>
    toolFrom(http, { get: async () => ({ ...page, ...changes }) }).invoke({ url: 'http://x/' }, context())

  test('an error page, a cut page and a binary one say so', async () => {
    expect(await fetched({ status: 404 })).toMatchObject({
      success: false,
      error: 'the server answered 404',
      output: expect.stringContaining('hi'),
    })
    expect((await fetched({ truncated: true })).output).toEndWith('hi\n[only the first 2 bytes were read]')
    expect((await fetched({ headers: { 'content-type': 'image/png' } })).output).toContain('[binary content, 2 bytes, not shown]')
    expect((await fetched({ body: 'a\0' })).output).toContain('[binary content')
    expect((await fetched({})).output).toBe('HTTP 200, text/html, as Markdown, http://x/\n\nhi')
    expect((await fetched({ headers: {} })).output).toBe('HTTP 200, no content type, http://x/\n\nhi')
  })

  test('a post carries its body and a fitting type; a get has none', async () => {
    const sent: object[] = []
    const tool = toolFrom(http, {
      get: async (url, { signal: _signal, ...options }) => {
        sent.push({ url, ...options })
        return page
      },
    })
    expect(await tool.invoke({ url: 'u', body: 'x' }, context())).toMatchObject({
      success: false,
      error: expect.stringContaining('method POST'),
    })
    await tool.invoke({ url: 'u', method: 'POST', body: '{"a":1}' }, context())
    expect(sent).toEqual([{ url: 'u', method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } }])
    expect(tool.touches({ url: 'u', method: 'POST' })).toEqual([{ kind: 'url', url: 'u', method: 'POST' }])
  })
})

describe('time, memory_search and ask_user', () => {
  test('the time is told here and in UTC', async () => {
    const { output } = await toolFrom(time, { now: () => 1_763_665_445_000, timeZone: 'Asia/Kolkata' }).invoke({}, context())
    expect(output).toBe('local: 2025-11-21 00:34:05 GMT+5:30\nutc: 2025-11-20T19:04:05.000Z\ntimezone: Asia/Kolkata')
  })

  test('memories are shown a line each; nothing found and an empty query are said', async () => {
    const hit = { conversationId: 'c1', role: 'user', at: 0, snippet: 'the\n[Aardvark]\nadapter' }
    const tool = toolFrom(memorySearch, { search: ({ query, limit }) => (query === 'aardvark' && limit === 10 ? [hit] : []) })
    expect((await tool.invoke({ query: 'aardvark' }, context())).output).toBe('[1970-01-01 00:00 c1 user] the [Aardvark] adapter')
    expect((await tool.invoke({ query: 'zebra' }, context())).output).toContain('nothing was said that matches "zebra"')
    expect(await tool.invoke({ query: ' ' }, context())).toMatchObject({ success: false })
  })

  test('a question needs somebody to ask', async () => {
    expect(await toolFrom(askUser, {}).invoke({ question: 'Why?' }, context())).toMatchObject({
      success: false,
      error: expect.stringContaining('no user is connected'),
    })
    const silent = toolFrom(askUser, { ask: async () => undefined })
    expect(await silent.invoke({ question: 'Why?' }, context())).toMatchObject({
      success: false,
      error: expect.stringContaining('no answer'),
    })
    const friendly = toolFrom(askUser, { ask: async (question) => `${question} Because.` })
    expect(await friendly.invoke({ question: 'Why?' }, context())).toMatchObject({ success: true, output: 'Why? Because.' })
  })
})
