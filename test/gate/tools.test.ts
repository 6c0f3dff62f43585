/** The file tools on the real workspace, each call judged by the stand-in verdicts, carried out by the executor. Belongs in test/. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../src/kit/json.ts'
import { createTools } from '../../src/tools/list.ts'
import { cleanEnvironment, spawnPlain } from '../../src/tools/process.ts'
import { createExecutor } from '../../src/tools/run-tool.ts'
import { createGuardedFetch } from '../../src/workspace/net/guarded.ts'
import { openWorkspace } from '../../src/workspace/workspace.ts'

function fixture() {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'braidclaw-tools-')))
  const root = join(base, 'ws')
  mkdirSync(root)
  writeFileSync(join(base, 'secret'), 'OUTSIDE')
  const inside = (path: string) => path === root || path.startsWith(`${root}/`)
  const files = openWorkspace({
    root,
    check: (path) => (inside(path) ? { ok: true } : { ok: false, rule: 'path.outside_workspace', reason: 'outside the workspace' }),
  })
  const no = () => ({ ok: false, rule: 'url.private_address', reason: 'private' }) as const
  const { get } = createGuardedFetch({ judgeUrl: () => ({ ok: true }), judgeAddress: no, maxBytes: 1_000, timeoutMs: 1_000 })
  const maxOutputBytes = 4_000
  const scripts = new Map<string, string>()
  const tools = createTools({
    files,
    spawn: spawnPlain,
    planOf: (hash) => {
      const script = scripts.get(hash)
      return script === undefined ? undefined : { plan: { kind: 'script', script }, cwd: root }
    },
    env: cleanEnvironment({ home: root }),
    shellTimes: { usualS: 15, longestS: 600 },
    get,
    search: () => [],
    now: () => 0,
    maxOutputBytes,
    shownBytes: () => maxOutputBytes,
    result: () => ({ ok: false, message: 'none' }),
  })
  const execute = createExecutor({
    tools,
    log() {},
    room: () => ({ bytes: maxOutputBytes, tokens: maxOutputBytes, wholeBytes: 1_000_000 }),
    redact: (text) => text,
  })
  const run = (name: string, input: JsonObject) => {
    scripts.set('p', String(input.command))
    const judgement = { verdict: 'allow', risk: 'low', rule: 'r', reason: 'r', plan: 'p', summary: 's', writes: [] } as const
    return execute({ type: 'act', id: 'i', call: { id: 'i', name, input }, judgement }, new AbortController().signal)
  }
  return { base, root, run, [Symbol.dispose]: () => rmSync(base, { recursive: true, force: true }) }
}

describe('denials', () => {
  test('a link out is denied at execution time, for every file tool', async () => {
    using it = fixture()
    symlinkSync(it.base, join(it.root, 'door'))
    for (const [name, input] of [
      ['file_read', { path: 'door/secret' }],
      ['file_list', { path: 'door' }],
      ['file_write', { path: 'door/new', content: 'x' }],
      ['file_edit', { path: 'door/secret', old: 'O', new: 'x' }],
      ['search', { path: 'door', pattern: 'OUT' }],
      ['search', { path: 'door', glob: '*' }],
    ] as const) {
      const outcome = await it.run(name, input)
      expect(outcome.status).toBe('denied')
      expect(outcome.error).toContain('path.outside_workspace')
    }
    expect((await it.run('search', { pattern: 'OUTSIDE' })).output).toContain('no line matches')
    expect(readFileSync(join(it.base, 'secret'), 'utf8')).toBe('OUTSIDE')
  })

  test('a private address is denied by the network', async () => {
    using it = fixture()
    expect(await it.run('http', { url: 'http://127.0.0.1/' })).toMatchObject({ status: 'denied' })
  })
})

test('files are written, listed, read by pages, searched, edited and seen by the shell', async () => {
  using it = fixture()
  const content = Array.from({ length: 1_000 }, (_, i) => `line ${i + 1}\r\n`).join('')
  expect((await it.run('file_write', { path: 'a/ü.txt', content })).output).toBe(`created a/ü.txt (${content.length} bytes)`)
  expect((await it.run('file_list', { depth: 2 })).output).toBe(`a/\na/ü.txt (${content.length} bytes)`)
  let read = ''
  for (let offset = 1; ; ) {
    const { output } = await it.run('file_read', { path: 'a/ü.txt', offset })
    const next = /\[.*continue with offset (\d+)\]$/.exec(output)?.[1]
    read += output.replace(/\[lines [^[]*\]$/, '')
    if (next === undefined) break
    offset = Number(next)
  }
  expect(read).toBe(content)
  expect((await it.run('search', { pattern: 'line 77\\d' })).output.split('\n').length).toBe(10)
  expect((await it.run('file_edit', { path: 'a/ü.txt', old: 'line 2\nline 3\n', new: 'two\nthree\n' })).output).toContain(
    'at line 2 (line ends stay CRLF)',
  )
  expect((await it.run('shell', { command: 'sed -n 2,3p a/ü.txt | od -c | head -1' })).output).toContain('\\r  \\n')
})

test('pipes, sparse and binary files are refused in words', async () => {
  using it = fixture()
  Bun.spawnSync(['mkfifo', join(it.root, 'pipe')])
  writeFileSync(join(it.root, 'sparse'), '')
  truncateSync(join(it.root, 'sparse'), 1024 ** 3)
  expect((await it.run('file_read', { path: 'pipe' })).error).toContain('named pipe')
  expect((await it.run('file_read', { path: 'sparse' })).error).toContain('not text')
  expect((await it.run('search', { pattern: 'x' })).output).toBe(
    'no line matches in 1 files\n[1 places were not searched: sparse (larger than 64 MiB)]',
  )
})
