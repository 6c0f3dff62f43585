import { describe, expect, test } from 'bun:test'
import { canonical } from '../kit/json.ts'
import { type PlanBody, planHash, refusalHash, summarise } from './plan.ts'

const body: PlanBody = {
  tool: 'shell',
  input: { command: 'ls' },
  paths: [],
  urls: [],
  commands: [{ plan: { kind: 'argv', argv: ['ls', '-l'], executable: '/usr/bin/ls' }, cwd: '/ws' }],
  targets: {},
  envHash: 'e',
  policyVersion: 'v',
  conversation: 'c',
}

test('every field counts in the hash', () => {
  const changes: Partial<PlanBody>[] = [
    { tool: 'sh' },
    { input: { command: 'ls', cwd: '.' } },
    { paths: [{ given: 'a', path: '/ws/a', access: 'read' }] },
    { urls: [{ url: 'https://x.org/', method: 'GET' }] },
    { commands: [{ plan: { kind: 'argv', argv: ['ls', '-l'], executable: '/tmp/ls' }, cwd: '/ws' }] },
    { commands: [{ plan: { kind: 'argv', argv: ['ls', '-a'], executable: '/usr/bin/ls' }, cwd: '/ws' }] },
    { commands: [{ plan: { kind: 'script', script: 'ls -l' }, cwd: '/ws' }] },
    { commands: [{ plan: { kind: 'argv', argv: ['ls', '-l'], executable: '/usr/bin/ls' }, cwd: '/' }] },
    { targets: { '/ws/a': 'abc' } },
    { envHash: 'f' },
    { policyVersion: 'w' },
    { conversation: 'd' },
  ]
  const hashes = new Set([planHash(body), ...changes.map((change) => planHash({ ...body, ...change }))])
  expect(hashes.size).toBe(changes.length + 1)
})

test('the hash is SHA-256 over canonical JSON, so another program can compute it', () => {
  const { createHash } = require('node:crypto')
  expect(planHash(body)).toBe(
    createHash('sha256')
      .update(canonical({ v: 1, ...body }))
      .digest('hex'),
  )
  expect(planHash(body)).toBe(planHash({ ...body, input: JSON.parse('{ "command": "ls" }') }))
})

test('a refusal has a hash even when its arguments have no canonical form', () => {
  const call = { id: '1', name: 'x', input: { a: '\ud800' } }
  expect(refusalHash(call, 'c')).toHaveLength(64)
  expect(refusalHash({ ...call, input: { a: '\ud801' } }, 'c')).not.toBe(refusalHash(call, 'c'))
})

describe('the line a person reads', () => {
  const call = { name: 'shell', input: {} }
  const argv = (...words: string[]) => ({
    ...body,
    commands: [{ plan: { kind: 'argv' as const, argv: words, executable: `/bin/${words[0]}` }, cwd: '/ws' }],
  })

  test('shows the resolved executable and quotes the words', () => {
    expect(summarise(call, argv('cp', 'a b', "it's", ''))).toBe(`shell: /bin/cp 'a b' 'it'\\''s' ''`)
  })

  test('shows nothing that could act on a terminal or hide text', () => {
    const line = summarise(call, argv('echo', '\u001b[2J\r\n\u202e\u200b\u2066\u0085\u2028\ufeff\u00a0\u3164\u{e0041}\ud800'))
    expect(line).toBe(
      "shell: /bin/echo '\\u{1b}[2J\\u{d}\\u{a}\\u{202e}\\u{200b}\\u{2066}\\u{85}\\u{2028}\\u{feff}\\u{a0}\\u{3164}\\u{e0041}\\u{d800}'",
    )
  })

  test('shows nothing that only looks like a space or like nothing, and counts what would fill a row of the terminal', () => {
    expect(summarise(call, argv('echo', '\u2800\u{1d159}\ufffc\u{16fe4}\ufdd0'))).toBe(
      "shell: /bin/echo '\\u{2800}\\u{1d159}\\u{fffc}\\u{16fe4}\\u{fdd0}'",
    )
    expect(summarise(call, argv('echo', `a${' '.repeat(70)}Approve? [y/N/a]`))).toBe("shell: /bin/echo 'a\\u{20}*70Approve? [y/N/a]'")
    expect(summarise(call, argv('echo', `a${' '.repeat(7)}b`))).toBe(`shell: /bin/echo 'a${' '.repeat(7)}b'`)
  })

  test('an escape that was already in the text cannot be mistaken for a hidden character', () => {
    expect(summarise(call, argv('echo', '\\u{1b}'))).not.toBe(summarise(call, argv('echo', '\u001b')))
  })

  test('is cut visibly, with length and hash, and keeps its end', () => {
    const line = summarise(call, argv('echo', `${'a'.repeat(5000)};rm`))
    expect(line).toContain('cut: 5022 characters, sha256 ')
    expect(line).toEndWith(";rm'")
    expect(line.length).toBeLessThan(700)
    expect(summarise(call, argv('echo', `${'a'.repeat(2500)}X${'a'.repeat(2499)};rm`))).not.toBe(line)
  })

  test('of a path, a URL, a script, or else the arguments', () => {
    const none = { ...body, commands: [] }
    expect(summarise({ name: 'file_write', input: {} }, { ...none, paths: [{ given: 'a', path: '/ws/a', access: 'write' }] })).toBe(
      'file_write: write /ws/a',
    )
    expect(summarise({ name: 'http', input: {} }, { ...none, urls: [{ url: 'https://x.org/', method: 'POST' }] })).toBe(
      'http: POST https://x.org/',
    )
    expect(summarise(call, { ...none, commands: [{ plan: { kind: 'script', script: "ls 'a'\npwd" }, cwd: '/' }] })).toBe(
      "shell: sh script: ls 'a'\\u{a}pwd",
    )
    expect(summarise({ name: 'ask', input: { q: 'ü' } }, none)).toBe('ask: {"q":"ü"}')
    expect(summarise({ name: 'x', input: {}, malformed: '{"a' })).toBe('x: {"a')
  })
})
