import { describe, expect, test } from 'bun:test'
import type { Json } from '../../kit/json.ts'
import { callOf, gateOf, said } from '../gate.fixture.ts'
import type { Policy } from '../policy.ts'
import { judgeTransfer, parseRemote, rewriteUrl } from './judge-transfer.ts'
import { transferWords } from './plain-git.ts'
import type { RepositoryFacts } from './transfer.ts'

const [a, b] = ['a'.repeat(40), 'b'.repeat(40)]
const github = 'https://github.com/o/r.git'

type Settings = { readonly [key: string]: string | readonly string[] }
const entries = (settings: Settings) =>
  Object.entries(settings).flatMap(([key, value]) => [value].flat().map((each) => ({ key, value: each })))

function facts(local: Settings = {}, more: Partial<RepositoryFacts> = {}): RepositoryFacts {
  const usual = {
    'remote.origin.url': github,
    'remote.origin.fetch': '+refs/heads/*:refs/remotes/origin/*',
    'branch.main.remote': 'origin',
  }
  const refs = new Map([
    ['refs/heads/main', a],
    ['refs/heads/side', b],
    ['refs/tags/v1', b],
  ])
  const where = { folder: '/w', git: '/w/.git', common: '/w/.git', inside: true }
  return {
    ...where,
    local: entries({ ...usual, 'branch.main.merge': 'refs/heads/main', ...local }),
    user: [],
    branch: 'main',
    head: a,
    refs,
    ...more,
  }
}

const argv = (text: string) => ({ kind: 'argv', argv: text.split(' '), executable: '/usr/bin/git' }) as const
const policy = { allowedDomains: ['github.com'], allowedPorts: [] }
const judge = (text: string, repository: RepositoryFacts | undefined = facts(), more: Partial<typeof policy> = {}) =>
  judgeTransfer({ plan: argv(text), cwd: '/w', read: async () => repository, policy: { ...policy, ...more } })

describe('what is not plain stays in the sandbox', () => {
  test.each([
    'git clone https://github.com/o/r',
    `git push ${github}`,
    'git push ../other main',
    'git push origin main --receive-pack=x',
    'git push --exec=x origin main',
    'git push --mirror origin',
    'git push --prune origin',
    'git push -o x origin',
    'git fetch --upload-pack x origin',
    'git fetch origin main:main',
    'git fetch --depth 1',
    'git fetch -qv',
    'git -c core.sshCommand=x fetch',
    'git --git-dir=x fetch',
    'git push origin main:',
    'git push origin a:b:c',
    'git push origin --delete-all',
    'git push origin refs/heads/../x',
    'git pull origin -- main',
  ])('%s', (text) => expect(transferWords(argv(text))).toBeUndefined())

  test('nor does a remote that is a folder, none at all, or a folder without a repository', async () => {
    expect(await judge('git fetch', facts({ 'remote.origin.url': './elsewhere' }))).toBeUndefined()
    expect(await judge('git fetch upstream')).toBeUndefined()
    expect(await judgeTransfer({ plan: argv('git fetch'), cwd: '/w', read: async () => undefined, policy })).toBeUndefined()
  })
})

describe('refused', () => {
  test.each([
    'core.sshcommand',
    'core.gitproxy',
    'core.askpass',
    'core.alternaterefscommand',
    'credential.helper',
    'credential.https://github.com.helper',
    'url.https://evil.example/.insteadof',
    'url.https://evil.example/.pushinsteadof',
    'http.proxy',
    'http.sslverify',
    'http.https://github.com/.extraheader',
    'ssh.variant',
    'protocol.ext.allow',
    'push.gpgsign',
    'remote.origin.uploadpack',
    'remote.origin.receivepack',
    'remote.origin.vcs',
    'remote.origin.proxy',
    'remote.origin.mirror',
    'remote.origin.push',
  ])('the setting %s of the repository, by its name', async (key) => {
    for (const text of ['git fetch', 'git push', 'git pull'])
      expect(await judge(text, facts({ [key]: 'x' }))).toMatchObject({
        ok: false,
        rule: 'git.settings',
        reason: expect.stringContaining(key),
      })
  })

  test.each([
    ['git fetch', { 'extensions.partialclone': 'origin' }, 'git.remote'],
    ['git fetch', { 'extensions.refstorage': 'reftable' }, 'git.remote'],
    ['git push', { 'remote.origin.pushurl': [github, 'https://evil.example/'] }, 'git.remote'],
    ['git fetch', { 'remote.origin.url': 'http://github.com/o/r' }, 'git.remote'],
    ['git fetch', { 'remote.origin.url': 'https://10.0.0.1/r' }, 'url.private_address'],
    ['git fetch', { 'remote.origin.url': 'git@nas:r' }, 'url.local_name'],
    ['git fetch', { 'remote.origin.url': 'ssh://git@github.com:2222/r' }, 'url.port'],
    ['git push origin gone', {}, 'git.refs'],
    ['git push', { 'push.default': 'matching' }, 'git.refs'],
    ['git push', { 'branch.main.merge': 'refs/heads/other' }, 'git.refs'],
  ] as const)('%s with %j', async (text, local, rule) => expect(await judge(text, facts(local))).toMatchObject({ ok: false, rule }))

  test('a detached HEAD has no branch to push, and a repository elsewhere takes nothing', async () => {
    const { branch: _, ...detached } = facts()
    expect(await judge('git push', detached)).toMatchObject({ ok: false, rule: 'git.refs' })
    expect(await judge('git fetch', facts({}, { inside: false }))).toMatchObject({ ok: false, rule: 'git.remote' })
  })
})

describe('a push', () => {
  test.each([
    ['git push', `${a}:refs/heads/main`, false],
    ['git push -u origin HEAD', `${a}:refs/heads/main`, false],
    ['git push origin side', `${b}:refs/heads/side`, false],
    ['git push origin v1', `${b}:refs/tags/v1`, false],
    ['git push origin side:main', `${b}:refs/heads/main`, false],
    ['git push origin main:refs/for/main', `${a}:refs/for/main`, false],
    ['git push --tags', `${b}:refs/tags/v1`, false],
    ['git push -f', `${a}:refs/heads/main`, true],
    ['git push --force-with-lease', `${a}:refs/heads/main`, true],
    ['git push origin +main', `+${a}:refs/heads/main`, true],
    ['git push origin :side', ':refs/heads/side', true],
    ['git push --delete origin side', ':refs/heads/side', true],
  ])('%s sends exactly %s', async (text, spec, rewrites) => {
    const verdict = await judge(text)
    if (!verdict?.ok) throw new Error(verdict?.reason)
    expect([verdict.transfer.words.at(-1), verdict.transfer.rewrites]).toEqual([spec, rewrites])
    expect(/REPLACES|DELETES/.test(verdict.transfer.says)).toBe(rewrites)
  })

  test('-u notes the upstream in the view', async () => {
    expect(await judge('git push -u origin side')).toMatchObject({
      transfer: {
        after: [
          ['config', 'branch.side.remote', 'origin'],
          ['config', 'branch.side.merge', 'refs/heads/side'],
        ],
      },
    })
  })
})

test('only the remote branches and tags of a fetch are written, so a mirror moves no branch', async () => {
  const mirror = facts({
    'remote.origin.fetch': ['+refs/*:refs/*', '+refs/heads/*:refs/heads/*', '+refs/heads/*:refs/remotes/o/*', '^refs/heads/x'],
  })
  const verdict = await judge('git fetch', mirror)
  expect(verdict?.ok && verdict.transfer.settings.filter(([key]) => key.endsWith('.fetch')).map(([, value]) => value)).toEqual([
    '+refs/heads/*:refs/remotes/o/*',
    '^refs/heads/x',
  ])
})

test.each([
  ['https://User:Secret@GitHub.com:8443/o/r', 'github.com', 8443, 'https://github.com:8443/o/r'],
  ['git@github.com:o/r.git', 'github.com', 22, 'git@github.com:o/r.git'],
  ['ssh://git@[::1]/r', undefined, 0, ''],
  ['ssh://-oProxyCommand=x/r', undefined, 0, ''],
  ['-x@host:r', undefined, 0, ''],
  ['ext::sh -c x', undefined, 0, ''],
  ['ext::x', undefined, 0, ''],
  ['git://github.com/r', undefined, 0, ''],
  ['file:///r', undefined, 0, ''],
  ['https://github.com\\@evil.example/r', undefined, 0, ''],
  ['https://github.com@evil.example/r', 'evil.example', 443, 'https://evil.example/r'],
])('the address %s is read as git reads it', (url, host, port, shown) => {
  const found = parseRemote(url)
  expect(found && { host: found.host, port: found.port, shown: found.shown }).toEqual(
    host === undefined ? undefined : { host, port, shown },
  )
})

test('the longest insteadOf is put in the place, and that for pushes only for them', () => {
  const user = entries({ 'url.https://a/.insteadof': 'x:', 'url.https://b/.insteadof': 'x:y/', 'url.ssh://c/.pushinsteadof': 'x:' })
  expect(rewriteUrl('x:y/z', user, ['insteadof'])).toBe('https://b/z')
  expect(rewriteUrl('x:y/z', user, ['pushinsteadof', 'insteadof'])).toBe('ssh://c/y/z')
  expect(rewriteUrl('other', user, ['insteadof'])).toBe('other')
})

const mode = { confined: true, transaction: true }
const at = (command: string, fields: Partial<Policy> = {}, repository = facts()) =>
  said('shell', { command }, { allowedDomains: ['github.com'], ...fields }, { commands: mode, repository: async () => repository })

describe('at each level', () => {
  const auto = { approveAllMedium: true }
  const elsewhere = facts({ 'remote.origin.url': 'git@git.example.org:r' })
  test.each([
    ['git push', { autonomy: 'readonly' }, undefined, 'deny high autonomy.readonly'],
    ['git push', {}, undefined, 'ask high autonomy.network_asks'],
    ['git push', auto, undefined, 'ask high autonomy.network_asks'],
    ['git push', { autonomy: 'full' }, undefined, 'allow high autonomy.full'],
    ['git push', { autonomy: 'full' }, elsewhere, 'ask high autonomy.network_asks'],
    ['git push -f', { autonomy: 'full', egress: 'open' }, undefined, 'ask high autonomy.network_asks'],
    ['git push', { unlistedCommands: 'block' }, undefined, 'deny high autonomy.high_blocked'],
    ['git fetch', { autonomy: 'readonly' }, undefined, 'deny medium autonomy.readonly'],
    ['git fetch', {}, undefined, 'allow medium autonomy.transaction'],
    ['git fetch', {}, elsewhere, 'ask high autonomy.network_asks'],
    ['git pull', auto, elsewhere, 'ask high autonomy.network_asks'],
    ['git pull', { autonomy: 'full' }, elsewhere, 'ask high autonomy.network_asks'],
    ['git pull', { autonomy: 'full', egress: 'open' }, elsewhere, 'allow medium autonomy.full'],
  ] as const)('%s with %j', async (command, fields, repository, verdict) => expect(await at(command, fields, repository)).toBe(verdict))

  test('a fetch counts as reading what others wrote, a push to a listed host as sending', async () => {
    const labels = async (command: string) =>
      (
        await gateOf({ allowedDomains: ['github.com'] }, { commands: mode, repository: async () => facts() }).judge(
          callOf('shell', { command }),
        )
      ).labels
    expect(await labels('git fetch')).toEqual(['reads_untrusted'])
    expect(await labels('git push')).toEqual(['sends'])
  })
})

test('another address, another commit or another branch is another plan', async () => {
  const hash = async (repository: RepositoryFacts) => {
    const gate = gateOf({ allowedDomains: ['github.com'] }, { commands: mode, repository: async () => repository })
    const input: { [key: string]: Json } = { command: 'git push' }
    return (await gate.judge(callOf('shell', input))).plan
  }
  const first = await hash(facts())
  expect(await hash(facts())).toBe(first)
  for (const other of [
    facts({ 'remote.origin.url': 'https://github.com/o/other.git' }),
    facts({ 'remote.origin.pushurl': 'https://github.com/o/other.git' }),
    facts({}, { user: entries({ 'url.ssh://git@github.com/.insteadof': 'https://github.com/' }) }),
    facts({}, { refs: new Map([['refs/heads/main', b]]) }),
    facts({}, { branch: 'side' }),
  ])
    expect(await hash(other)).not.toBe(first)
})
