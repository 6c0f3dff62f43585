import { describe, expect, test } from 'bun:test'
import { securityRows } from '../settings.ts'
import { forbiddenReads, judgePath } from './path.ts'

const ask = (patterns: readonly string[]) => forbiddenReads({ patterns, workspace: '/ws', home: '/home/u' })
const usual = ask(securityRows.forbidden_reads.default)

describe('by default', () => {
  test.each([
    '.env',
    'app/.env',
    '.env.local',
    'a/b/.env.production',
    '.ENV',
    'server.pem',
    'certs/private.pem',
    'id_rsa',
    'backup/.ssh/id_ed25519',
    '.netrc',
    '.git-credentials',
    'credentials.json',
    '.aws/credentials',
    'client_secret_1.json',
    'x/store.p12',
  ])('%s is not read', (path) => expect(usual(`/ws/${path}`)).toBeString())

  test.each([
    '.env.example',
    'app/.env.sample',
    '.env.template',
    '.envrc',
    'environment.ts',
    'src/env.ts',
    'id_rsa.pub',
    'id_generator.py',
    'src/credentials/store.ts',
    'node_modules/x/test/cert.pem',
    '.venv/lib/python3.11/site-packages/certifi/cacert.pem',
    '.env/bin/python',
    'pem',
    '.npmrc',
  ])('%s is read', (path) => expect(usual(`/ws/${path}`)).toBeUndefined())
})

describe('a pattern', () => {
  test('without a slash means a name in any folder, with one a place, and a later one overrides it', () => {
    const own = ask(['secret.txt', 'keys/*', '!keys/public', '~/notes/**', '/srv/x?'])
    for (const path of ['/ws/secret.txt', '/ws/a/b/secret.txt', '/ws/keys/a', '/home/u/notes/a/b', '/srv/x1'])
      expect(own(path)).toBeString()
    for (const path of ['/ws/secret.txt.bak', '/ws/keys/public', '/ws/keys/a/b', '/ws/a/keys/b', '/home/u/note', '/srv/x'])
      expect(own(path)).toBeUndefined()
  })

  test('is text apart from its wildcards', () => {
    const own = ask(['a+b(c)[d].txt', 'ü*.key'])
    expect([own('/ws/a+b(c)[d].txt'), own('/ws/ü1.key')]).toEqual(['a+b(c)[d].txt', 'ü*.key'])
    expect(own('/ws/aab(c)d.txt')).toBeUndefined()
  })
})

test('the gate refuses to read such a file, says which pattern, and lets it be written and listed', () => {
  const policy = {
    workspace: '/ws',
    workspaceOnly: true,
    forbiddenPaths: [],
    protectedPaths: [],
    home: '/home/u',
    forbiddenReads: ['**/.env'],
  }
  expect(judgePath({ path: 'app/.env', access: 'read', cwd: '/ws', policy })).toEqual({
    ok: false,
    rule: 'path.forbidden_read',
    reason:
      'path: "app/.env" is a file that is not read (security.forbidden_reads: **/.env); work without its content, or ask the operator',
  })
  expect(judgePath({ path: 'app/.env', access: 'write', cwd: '/ws', policy }).ok).toBe(true)
  expect(judgePath({ path: 'app', access: 'read', cwd: '/ws', policy }).ok).toBe(true)
})
