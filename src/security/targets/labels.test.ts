import { expect, test } from 'bun:test'
import { type CallFacts, labelsOf } from '../gate.ts'

const policy = { workspace: '/home/u/ws', home: '/home/u' }
const nothing: CallFacts = { tool: 'file_read', paths: [], requests: [], hosts: [] }
const labels = (call: Partial<CallFacts>, more: Parameters<typeof labelsOf>[1] = policy) =>
  (labelsOf({ ...nothing, ...call }, more) ?? []).join(' ')
const reading = (path: string, real?: string) => labels({ paths: [{ path, access: 'read', ...(real ? { real } : {}) }] })

test('ordinary work in the workspace has no label', () => {
  for (const path of ['src/a.ts', 'README.md', 'vendored.ts', 'my_node_modules/x', 'keyboard.ts', 'environment.env.md', '.env.example'])
    expect([path, reading(`/home/u/ws/${path}`)]).toEqual([path, ''])
  expect(labels({ paths: [{ path: '/home/u/ws/.env', access: 'write' }] })).toBe('')
  expect(labels({ tool: 'time' })).toBe('')
})

test('files that hold keys are private, wherever they are, also behind a link', () => {
  for (const name of ['.env', '.env.local', 'tls.pem', 'id_ed25519', '.netrc', 'aws-credentials.json', 'secrets.yaml', '.NPMRC'])
    expect([name, reading(`/home/u/ws/deep/${name}`)]).toEqual([name, 'reads_private'])
  expect(reading('/home/u/ws/notes', '/home/u/ws/.env')).toBe('reads_private')
})

test('outside the workspace everything is private, and outside the home folder also of others', () => {
  expect(reading('/home/u/other/a.md')).toBe('reads_private')
  expect(reading('/home/u/wsx/a.md')).toBe('reads_private')
  expect(reading('/tmp/a.md')).toBe('reads_private reads_untrusted')
})

test('installed packages are of others', () => {
  for (const path of ['node_modules/a/index.js', 'py/lib/site-packages/a.py', 'vendor/a/b.go', 'third_party/x'])
    expect([path, reading(`/home/u/ws/${path}`)]).toEqual([path, 'reads_untrusted'])
})

test('what comes over the network is of others, and what could take data along sends', () => {
  expect(labels({ requests: [{ carries: false, foreign: true }] })).toBe('reads_untrusted')
  expect(labels({ requests: [{ carries: true, foreign: false }] })).toBe('sends')
  expect(
    labels({
      requests: [
        { carries: false, foreign: true },
        { carries: true, foreign: false },
      ],
    }),
  ).toBe('reads_untrusted sends')
  expect(labels({ hosts: ['registry.npmjs.org'] })).toBe('reads_untrusted sends')
})

test('memory_search is private, but not in a chat with a memory of its own', () => {
  const chat = { name: 'discord', memory: 'own' } as const
  expect(labels({ tool: 'memory_search' })).toBe('reads_private')
  expect(labels({ tool: 'memory_search' }, { ...policy, channel: chat })).toBe('')
  expect(labels({ tool: 'memory_search' }, { ...policy, channel: { ...chat, memory: 'all' } })).toBe('reads_private')
})
