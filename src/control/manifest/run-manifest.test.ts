import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { needs } from '../../../test/support/needs.ts'
import { repetitions } from '../../../test/support/tier.ts'
import { isObject } from '../../kit/json.ts'
import { sha256 } from '../../kit/sha256.ts'
import { openAgentKey } from './agent-key.ts'
import { manifestText, type RunManifest, signManifest } from './run-manifest.ts'
import { verifyManifest, verifyManifestText, verifyRunPath, writeRunFolder } from './verify-manifest.ts'

const folder = mkdtempSync(join(tmpdir(), 'braidclaw-manifest-'))
afterAll(() => rmSync(folder, { recursive: true }))

const bytes = (text: string) => new TextEncoder().encode(text)
const log = bytes('one line\n')
const report = bytes('the report é')
const artifacts = new Map([['report.md', report]])
const none = sha256('')

const manifest: RunManifest = {
  format: 'braidclaw.run-manifest',
  version: 1,
  run_id: 'RUN-007',
  attempt: 1,
  task: {
    task_id: 'TASK-001',
    title: 'Check if db jail is running é',
    created_by: 'operator anna',
    description_digest: none,
    context_digest: none,
    prompt_digest: none,
  },
  by: { agent_id: 'sysadmin', role: 'sysadmin', host: 'host-a' },
  with: { braidclaw: '0.1.0', runner: 'pi', runner_version: '0.87.1', model: null, platform: 'linux-x64', confinement: 'bwrap' },
  began_at: '2026-11-23T18:00:00.000Z',
  ended_at: '2026-11-23T18:01:00.000Z',
  outcome: { status: 'success', skill: 'jail-status', output_digest: none, exit_code: 0 },
  tokens: 420,
  changes: { state: 'waiting', digest: none },
  artifacts: [{ name: 'report.md', digest: sha256(report), bytes: report.byteLength }],
  receipts: { ids: ['r1'], count: 3, head: none },
  log: { bytes: log.byteLength, digest: sha256(log), truncated: false },
}

const key = openAgentKey(join(folder, 'a'))
const other = openAgentKey(join(folder, 'b'))
const signed = signManifest(manifest, key)
const text = manifestText(signed)
const all = { artifacts, log, pinnedKey: key.publicKey }

function problemsOf(verified: ReturnType<typeof verifyManifest>): string {
  return verified.ok ? '' : verified.problems.join('; ')
}

test('a manifest that was delivered for another run, attempt, task or agent than its own is refused', () => {
  const run = { run_id: 'RUN-007', attempt: 1, task_id: 'TASK-001', agent_id: 'sysadmin', role: 'sysadmin' }
  expect(problemsOf(verifyManifest(signed, { ...all, run }))).toBe('')
  for (const other of [{ run_id: 'RUN-008' }, { attempt: 2 }, { task_id: 'TASK-002' }, { agent_id: 'db-admin' }, { role: 'db-admin' }])
    expect(problemsOf(verifyManifest(signed, { ...all, run: { ...run, ...other } }))).toStartWith(
      'it is the manifest of RUN-007, attempt 1',
    )
})

test('a key for which a signature that fits every manifest can be written signs nothing', () => {
  const weak = ['00', '01', 'ec', 'ed', 'ee'].map((first) => (first < 'a' ? `${first}${'00'.repeat(31)}` : `${first}${'ff'.repeat(30)}7f`))
  const order8 = [
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  ]
  const points = [...weak, ...order8].flatMap((key) => [
    key,
    `${key.slice(0, 62)}${(Number.parseInt(key.slice(62), 16) | 0x80).toString(16)}`,
  ])
  for (const public_key of points)
    for (const point of points)
      for (const run_id of ['RUN-001', 'RUN-002', 'RUN-003', 'RUN-004']) {
        const forged = { ...signed, run_id, signature: { ...signed.signature, public_key, value: `${point}${'00'.repeat(32)}` } }
        expect(problemsOf(verifyManifest(forged))).toContain('the signature does not fit')
      }
})

test('a manifest of another agent, altered, incomplete or with more than it should have is refused with the reason', () => {
  expect(problemsOf(verifyManifest(signManifest(manifest, other), all))).toContain('and not with the pinned key')
  expect(problemsOf(verifyManifest({ ...signed, tokens: 1 }, all))).toContain('altered after it was signed')
  expect(problemsOf(verifyManifest({ ...signed, more: 1 }, all))).toContain('more')
  expect(problemsOf(verifyManifest({ ...signed, log: undefined }, all))).toContain('log')
  expect(problemsOf(verifyManifest({ ...signed, signature: { ...signed.signature, public_key: other.publicKey } }))).toContain('altered')
  expect(problemsOf(verifyManifest({ ...signed, version: 2 }))).toContain('version')
  for (const value of [null, 3, 'x', [], {}]) expect(verifyManifest(value, all).ok).toBe(false)
})

test('every artifact and the log must be there, whole, and nothing else', () => {
  const verify = (given: ReadonlyMap<string, Uint8Array>, logGiven = log) =>
    problemsOf(verifyManifest(signed, { artifacts: given, log: logGiven }))
  expect(verify(new Map())).toBe('the artifact "report.md" is missing')
  expect(verify(new Map([['report.md', bytes('the report e!')]]))).toContain('has the digest')
  expect(verify(new Map([['report.md', bytes('short')]]))).toBe('the artifact "report.md" has 5 bytes, and the manifest says 13')
  expect(verify(new Map([...artifacts, ['x', log]]))).toBe('the artifact "x" is not in the manifest')
  expect(verify(artifacts, bytes('one linE\n'))).toContain('the log has the digest')
})

test('what was signed verifies, and it says what was not looked at', () => {
  const verified = verifyManifestText(text, all)
  expect(verified).toMatchObject({ ok: true, unchecked: [], manifest: signed })
  const alone = verifyManifestText(text)
  expect(alone.ok && alone.unchecked).toEqual([`that the key ${key.publicKey} is the agent's`, 'its artifacts (1)', 'its log (9 bytes)'])
})

test('every single bit of the file counts', () => {
  const original = bytes(text)
  const file = join(folder, 'flipped.json')
  // Each step meets every kind of byte: a name, a sign between, a digest, the key and the signature.
  for (let at = 0; at < original.length; at += repetitions({ fast: 11, deep: 1 })) {
    const flipped = Uint8Array.from(original)
    flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8))
    writeFileSync(file, flipped)
    expect(verifyRunPath(file).ok).toBe(false)
  }
})

test('no byte may be changed, added or taken away', () => {
  fc.assert(
    fc.property(
      fc.nat(text.length - 1),
      fc.constantFrom('change', 'add', 'remove'),
      fc.string({ minLength: 1, maxLength: 1 }),
      (at, how, char) => {
        const altered = text.slice(0, at) + (how === 'remove' ? '' : char) + text.slice(how === 'add' ? at : at + 1)
        expect(verifyManifestText(altered).ok).toBe(altered === text)
      },
    ),
    {
      numRuns: repetitions({ fast: 60, deep: 300 }),
      // JSON means the same with them.
      examples: [
        [text.indexOf(',') + 1, 'add', ' '],
        [0, 'add', '\n'],
      ],
    },
  )
})

test('the same facts have the same bytes, whatever the order of their fields', () => {
  const turned = JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(manifest).reverse())))
  expect(manifestText(signManifest(turned, key))).toBe(text)
  expect(verifyManifest(JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(signed).reverse()))), all).ok).toBe(true)
})

test('a run is carried to another host as a folder and verified there', () => {
  const run = join(folder, 'run')
  expect(writeRunFolder(run, { manifest: signed, log, artifacts }).ok).toBe(true)
  const verified = verifyRunPath(run, key.publicKey)
  expect(verified.ok && verified.unchecked).toEqual([])
  writeFileSync(join(run, 'artifacts', 'added'), 'x')
  expect(problemsOf(verifyRunPath(run))).toBe('the artifact "added" is not in the manifest')
  rmSync(join(run, 'artifacts', 'added'))
  writeFileSync(join(run, 'run.log'), 'one line \n')
  expect(problemsOf(verifyRunPath(run))).toContain('the log has 10 bytes')
  writeFileSync(join(run, 'manifest.json'), JSON.stringify(signed, null, 2))
  expect(problemsOf(verifyRunPath(join(run, 'manifest.json')))).toContain('not the canonical text')
  expect(() => writeRunFolder(run, { manifest: signed, artifacts: new Map([['../x', log]]) })).toThrow('is not a valid file name')
})

test('the key is made once, for its owner alone, and a foreign or open one is refused', () => {
  const path = join(folder, 'a', 'manifest-key.pem')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(openAgentKey(join(folder, 'a')).publicKey).toBe(key.publicKey)
  expect(openAgentKey(join(folder, 'a')).publicKey).not.toBe(other.publicKey)
  chmodSync(path, 0o640)
  expect(() => openAgentKey(join(folder, 'a'))).toThrow('chmod 600')
  chmodSync(path, 0o600)
  const pem = readFileSync(path)
  writeFileSync(path, 'no key')
  expect(() => openAgentKey(join(folder, 'a'))).toThrow('holds no Ed25519 key')
  rmSync(path)
  writeFileSync(join(folder, 'real.pem'), pem, { mode: 0o600 })
  symlinkSync(join(folder, 'real.pem'), path)
  expect(() => openAgentKey(join(folder, 'a'))).toThrow('is a link')
})

test.if(needs('openssl'))(
  'another program agrees: openssl verifies the signature over the text that docs/run-manifest.md describes',
  () => {
    const { value, ...signature } = signed.signature
    const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(signature.public_key, 'hex')])
    const path = (name: string) => join(folder, name)
    writeFileSync(path('key.der'), der)
    writeFileSync(path('signature'), Buffer.from(value, 'hex'))
    const verify = (object: object) => {
      writeFileSync(path('text'), `braidclaw run manifest 1\n${JSON.stringify(sorted(object))}`)
      const files = ['-inkey', path('key.der'), '-sigfile', path('signature'), '-in', path('text')]
      return Bun.spawnSync(['openssl', 'pkeyutl', '-verify', '-pubin', '-keyform', 'DER', '-rawin', ...files]).exitCode
    }
    expect(verify({ ...signed, signature, tokens: 421 })).not.toBe(0)
    expect(verify({ ...signed, signature })).toBe(0)
  },
)

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, one]) => [key, sorted(one)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}
