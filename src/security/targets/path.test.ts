import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { policyWith } from '../gate.fixture.ts'
import type { Policy } from '../policy.ts'
import { type Access, judgePath } from './path.ts'

const workspace = '/home/u/ws'

function policy(fields: Partial<Policy> = {}): Policy {
  return policyWith({
    workspace,
    forbiddenPaths: ['/etc', '/sys', '/boot', '~/.ssh', '/home/u/ws/vault'],
    protectedPaths: ['/home/u/.braidclaw'],
    ...fields,
  })
}

function judge(path: string, access: Access = 'read', fields: Partial<Policy> = {}, cwd = workspace) {
  return judgePath({ path, access, cwd, policy: policy(fields) })
}

function ruleOf(...args: Parameters<typeof judge>): string {
  const verdict = judge(...args)
  return verdict.ok ? 'ok' : verdict.rule
}

describe('outside the workspace', () => {
  const outside = [
    '/etc/passwd',
    '..',
    '../x',
    'a/../../x',
    '/',
    '/home/u/ws2/x',
    '/home/u/ws/../ws2',
    '~',
    '~/x',
    '//etc//passwd',
    '/home/u/WS/x',
    'a/b/../../../etc/passwd',
  ]
  test.each(outside)('%s is refused', (path) => expect(ruleOf(path)).toBe('path.outside_workspace'))

  test('a sibling whose name only begins like the workspace is refused', () => {
    expect(ruleOf('/home/u/ws-evil/x')).toBe('path.outside_workspace')
  })

  test('a relative path is meant from the current folder, which may lie outside', () => {
    expect(ruleOf('x', 'read', {}, '/tmp')).toBe('path.outside_workspace')
    expect(ruleOf('../x', 'read', {}, `${workspace}/a`)).toBe('ok')
  })

  test('with workspace_only off it is allowed and marked, but forbidden paths and the kernel stay shut', () => {
    expect(judge('/srv/x', 'read', { workspaceOnly: false })).toEqual({ ok: true, path: '/srv/x', relative: '/srv/x', inside: false })
    expect(ruleOf('/etc/passwd', 'read', { workspaceOnly: false })).toBe('path.forbidden')
    expect(ruleOf('/etcetera', 'read', { workspaceOnly: false })).toBe('ok')
    expect(ruleOf('/proc/self/environ', 'read', { workspaceOnly: false })).toBe('path.kernel')
    expect(ruleOf('/dev/sda', 'write', { workspaceOnly: false })).toBe('path.kernel')
  })
})

describe('forbidden and protected', () => {
  test('a forbidden folder is shut inside the workspace too, with everything below', () => {
    expect(ruleOf('vault')).toBe('path.forbidden')
    expect(ruleOf('vault/a/b')).toBe('path.forbidden')
    expect(ruleOf('VAULT/a')).toBe('path.forbidden')
    expect(ruleOf('vaults/a')).toBe('ok')
  })

  test('~ in forbidden_paths is the home folder', () => {
    expect(ruleOf('~/.ssh/id_ed25519', 'read', { workspaceOnly: false })).toBe('path.forbidden')
  })

  test('our own home is neither read nor written, nor is a folder that holds it', () => {
    const open = { workspaceOnly: false }
    expect(ruleOf('~/.braidclaw/receipt.key', 'read', open)).toBe('path.protected')
    expect(ruleOf('~/.braidclaw', 'write', open)).toBe('path.protected')
    expect(ruleOf('/home/u', 'write', { ...open, forbiddenPaths: [] })).toBe('path.protected')
    expect(ruleOf('/home/u', 'read', open)).toBe('ok')
  })

  test('a workspace inside our home stays usable, the rest of the home stays shut', () => {
    const fields = {
      workspace: '/home/u/.braidclaw/workspace',
      protectedPaths: ['/home/u/.braidclaw', '/home/u/.braidclaw/workspace/ESTOP'],
    }
    expect(ruleOf('a', 'write', fields, fields.workspace)).toBe('ok')
    expect(ruleOf('ESTOP', 'read', fields, fields.workspace)).toBe('path.protected')
    expect(ruleOf('/home/u/.braidclaw/receipt.key', 'read', { ...fields, workspaceOnly: false })).toBe('path.protected')
  })

  test('a workspace that is our home itself is shut', () => {
    expect(ruleOf('x', 'read', { workspace: '/home/u/.braidclaw' }, '/home/u/.braidclaw')).toBe('path.protected')
  })

  const locked = [
    '.git',
    '.git/hooks/pre-commit',
    '.git/config',
    '.git/config.lock',
    'sub/.git/hooks',
    '.git/modules/lib/config',
    '.git/commondir',
    '.git/HEAD',
    '.git/info/exclude',
    '.git/worktrees/wt/commondir',
    '.git/rebase-merge/git-rebase-todo',
    '.gitmodules',
    '.mcp.json',
    '.bashrc',
    'deep/er/.zshenv',
    '.vscode/tasks.json',
    '.idea/runConfigurations/x.xml',
    '.braidclaw/config.toml',
    '.GIT/config',
    '.Git/HOOKS/post-checkout',
    '.g\u200cit/config',
    '.git./config',
    '.git /hooks/x',
    '.\uff47it/config',
    '.git/\u210dooks/x',
    '.VSCODE/tasks.json',
    'a/../.git/config',
    './/.git///config',
    '.config/autostart/x.desktop',
    '.envrc',
    '.github/workflows/ci.yml',
    '.Husky/pre-commit',
    'sub/.claude/settings.json',
    '.npmrc',
    'packages/a/.cargo/config.toml',
  ]
  test.each(locked)('%j is never written, and may be read', (path) => {
    expect(ruleOf(path, 'write')).toBe('path.protected')
    expect(ruleOf(path, 'read')).toBe('ok')
  })

  const free = [
    '.gitignore',
    '.github/ISSUE_TEMPLATE/bug.md',
    '.github/workflow',
    '.config/x',
    'package.json',
    'Makefile',
    'AGENTS.md',
    '.editorconfig',
    'git/config',
    'hooks/pre-commit',
    'mcp.json',
    '.env',
    'src/.profile.ts',
    'bashrc',
    '.gitattributes',
  ]
  test.each(free)('%s may be written', (path) => expect(ruleOf(path, 'write')).toBe('ok'))

  test('a workspace below such a name is not locked as a whole', () => {
    expect(ruleOf('conf.d/x', 'write', { workspace: '/home/u/.config/fish' }, '/home/u/.config/fish')).toBe('ok')
  })
})

describe('malformed', () => {
  test.each([
    ['', 'path.empty'],
    ['  ', 'path.empty'],
    ['a\0b', 'path.bad_character'],
    ['a\nb', 'path.bad_character'],
    ['a\u001b[2Jb', 'path.bad_character'],
    ['a\u202egnp.exe', 'path.bad_character'],
    ['a\ud800', 'path.bad_character'],
    ['~root/x', 'path.tilde_user'],
    ['~+/x', 'path.tilde_user'],
    [`${'x/'.repeat(3000)}`, 'path.too_long'],
    ['ü'.repeat(128), 'path.too_long'],
    [`a/${'x'.repeat(256)}`, 'path.too_long'],
    [`${'x/'.repeat(2048)}y`, 'path.too_long'],
  ])('%j breaks %s', (path, rule) => expect(ruleOf(path)).toBe(rule))

  test('the longest name and path are fine', () => {
    expect(ruleOf(`a/${'x'.repeat(255)}`)).toBe('ok')
    expect(ruleOf('x/'.repeat(2048))).toBe('ok')
  })

  test('names that only look odd are fine', () => {
    for (const path of ['./~x', 'a~', 'a\\b', '-rf', 'ü', '👩‍👧.png', '...', '..a', '$HOME', 'a b', '*']) expect(ruleOf(path)).toBe('ok')
  })
})

test('an allowed path comes back absolute, normalised and relative to the workspace', () => {
  expect(judge('./a//b/../c/')).toEqual({ ok: true, path: '/home/u/ws/a/c', relative: 'a/c', inside: true })
  expect(judge('.')).toEqual({ ok: true, path: workspace, relative: '.', inside: true })
  expect(judge('~/ws/a')).toMatchObject({ relative: 'a' })
  expect(judge('a', 'read', { workspace: '/', protectedPaths: [] }, '/')).toMatchObject({ path: '/a', relative: 'a', inside: true })
})

test('the words of a refusal name the path, the reason and the way out', () => {
  expect(judge('/etc/passwd')).toMatchObject({ reason: 'path: "/etc/passwd" is outside the workspace /home/u/ws; use a path inside it' })
})

const name = fc.oneof(
  fc.constantFrom('..', '.', '', 'a', 'ws', 'ws2', '.git', 'config', '~', 'etc', '.ssh', 'vault', 'u', 'home'),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
)
const anyPath = fc.tuple(fc.boolean(), fc.array(name, { maxLength: 8 })).map(([rooted, names]) => (rooted ? '/' : '') + names.join('/'))
const anyAccess = fc.constantFrom<Access>('read', 'write')

test('whatever is allowed lies in the workspace, without dots, and is judged the same again', () => {
  fc.assert(
    fc.property(anyPath, anyAccess, fc.constantFrom(workspace, `${workspace}/a`, '/', '/tmp'), (path, access, cwd) => {
      const verdict = judge(path, access, {}, cwd)
      if (!verdict.ok) return
      expect(verdict.path === workspace || verdict.path.startsWith(`${workspace}/`)).toBe(true)
      expect(
        verdict.path
          .split('/')
          .slice(1)
          .some((part) => part === '..' || part === '.' || part === ''),
      ).toBe(false)
      expect(judge(verdict.path, access)).toEqual(verdict)
    }),
    { numRuns: 3000 },
  )
})

test('whatever may be written may be read, and forbidding more never allows more', () => {
  fc.assert(
    fc.property(anyPath, anyPath, (path, more) => {
      const written = judge(path, 'write')
      if (written.ok) expect(judge(path, 'read')).toEqual(written)
      const stricter = judge(path, 'write', { forbiddenPaths: [...policy().forbiddenPaths, more] })
      if (stricter.ok) expect(written).toEqual(stricter)
    }),
    { numRuns: 2000 },
  )
})

test('any text at all gets a verdict', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), anyAccess, (path, access) =>
      expect(typeof judge(path, access).ok).toBe('boolean'),
    ),
  )
})
