/** Changes are judged as a whole, at the moment they are applied: by what is in the workspace then, and by the policy of then. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { dice } from '../support/dice.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { alone, call, everyTool, home, turn } from '../support/turns.ts'

const real = test.if(needs('bwrap') && needs('git'))

/** One file of a trap, made by a command or by a file tool. */
type Piece = { readonly path: string; readonly content: string; readonly runs?: true } | { readonly script: string }

type Kind = {
  readonly before?: string
  readonly pieces: (canary: string) => readonly Piece[]
  /** What the person does afterwards, in the workspace. */
  readonly trigger: string
}

const trap = (canary: string, more = '') => `[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch ${canary}; false"\n${more}`
const init = 'git init -q . && git -c user.name=n -c user.email=e commit -q --allow-empty -m one'
const shape = (folder: string) => [
  { path: `${folder}/HEAD`, content: 'ref: refs/heads/main\n' },
  { path: `${folder}/objects/k.txt`, content: 'k' },
  { path: `${folder}/refs/k.txt`, content: 'k' },
]

const kinds: { readonly [name: string]: Kind } = {
  'a repository in parts': {
    pieces: (canary) => [...shape('docs'), { path: 'docs/config', content: trap(canary, '\tworktree = .\n') }],
    trigger: 'cd docs && git status',
  },
  'a repository in parts, with a hook': {
    pieces: (canary) => [
      ...shape('lib'),
      { path: 'lib/config', content: '[core]\n\trepositoryformatversion = 0\n\tworktree = .\n[user]\n\tname = n\n\temail = e\n' },
      { path: 'lib/hooks/pre-commit', content: `#!/bin/sh\ntouch ${canary}\n`, runs: true },
    ],
    trigger: 'cd lib && git commit -q --allow-empty -m two',
  },
  'a folder of hooks, and the setting that names it': {
    before: init,
    pieces: (canary) => [
      { script: 'git config core.hooksPath hk' },
      { path: 'hk/pre-commit', content: `#!/bin/sh\ntouch ${canary}\n`, runs: true },
    ],
    trigger: 'git -c user.name=n -c user.email=e commit -q --allow-empty -m two',
  },
  'a link with a protected name, and what it leads to': {
    pieces: (canary) => [{ script: 'ln -s plain .git' }, ...shape('plain'), { path: 'plain/config', content: trap(canary) }],
    trigger: 'git status',
  },
  'a submodule, and its repository below modules': {
    before: init,
    pieces: (canary) => [
      { path: 'sub/.git', content: 'gitdir: ../store/sub\n' },
      ...shape('store/sub'),
      { path: 'store/sub/config', content: trap(canary, '\tworktree = ../../sub\n') },
    ],
    trigger: 'cd sub && git status',
  },
}

type Level = 'supervised' | 'auto' | 'full'

const flagsOf = (level: Level) => (level === 'full' ? ['--autonomy', 'full'] : level === 'auto' ? ['--approve-all-medium'] : [])

function callFor(piece: Piece, byFileTool: boolean) {
  if ('script' in piece) return { name: 'shell', arguments: { command: piece.script } }
  const { path, content, runs } = piece
  if (byFileTool && !runs) return { name: 'file_write', arguments: { path, content } }
  const folder = path.slice(0, path.lastIndexOf('/'))
  const command = `mkdir -p ${folder} && cat > ${path} <<'EOT'\n${content}EOT\n${runs ? `chmod +x ${path}` : ':'}`
  return { name: 'shell', arguments: { command } }
}

function outside(at: Nest, script: string): void {
  const env = { PATH: '/usr/bin:/bin', HOME: at.home, GIT_CONFIG_NOSYSTEM: '1', GIT_CEILING_DIRECTORIES: at.home }
  Bun.spawnSync(['sh', '-c', script], { cwd: at.workspace, env, stdio: ['ignore', 'ignore', 'ignore'] })
}

type Named = { readonly status: string; readonly error?: string }

/** Splits the pieces over replies and turns as the dice fall, lets the person say yes to all that asks, and triggers the trap. */
async function split(kind: Kind, throws: (end: number) => number) {
  using at = home()
  const canary = join(at.dir, 'ran')
  const level = (['supervised', 'auto', 'full'] as const)[throws(3)] ?? 'full'
  if (kind.before) outside(at, kind.before)
  outside(at, 'mkdir -p docs lib hk plain sub store/sub')
  const open = [...kind.pieces(canary)]
  const order: Piece[] = []
  while (open.length > 0) order.push(...open.splice(throws(open.length), 1))
  for (let left = order; left.length > 0; ) {
    const group = left.slice(0, 1 + throws(left.length))
    left = left.slice(group.length)
    const calls = group.map((piece) => callFor(piece, throws(2) === 0))
    await turn(at, [{ tool_calls: calls }, { text: 'done' }], flagsOf(level), { through: alone })
  }
  const asked: readonly { readonly id: string }[] = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)
  for (const { id } of asked) await at.run(['approvals', 'allow', id])
  outside(at, kind.trigger)
  const receipts: readonly Named[] = JSON.parse((await at.run(['receipt', 'list', '--json', '--limit', '100'])).stdout)
  return { ran: existsSync(canary), refused: receipts.filter(({ status }) => status !== 'allowed').length, level, asked: asked.length }
}

describe('a trap that is split over several calls never snaps', () => {
  for (const [name, kind] of Object.entries(kinds))
    for (let seed = 1; seed <= repetitions({ fast: 1, deep: 12 }); seed++)
      real(`${name}, seed ${seed}`, async () => {
        const { ran, refused } = await split(kind, dice(seed * 31 + name.length))
        expect(ran).toBe(false)
        expect(refused).toBeGreaterThan(0)
      })
})

const part = (...files: readonly string[]) =>
  call('shell', { command: `mkdir -p docs/refs; ${files.map((file) => `echo x > docs/${file}`).join('; ')}` })

describe('two sets that are harmless one by one', () => {
  const [first, second] = [
    { command: "mkdir -p docs/objects; echo 'ref: refs/heads/main' > docs/HEAD; echo k > docs/objects/k.txt" },
    (canary: string) => ({
      command: `mkdir -p docs/refs; echo k > docs/refs/k.txt; printf '%s' '${trap(canary, '\tworktree = .\n')}' > docs/config`,
    }),
  ]

  real('are refused at the second when both come in one reply, although full asks about neither', async () => {
    using at = home()
    const canary = join(at.dir, 'ran')
    mkdirSync(join(at.workspace, 'docs'))
    const calls = [first, second(canary)].map((command) => ({ name: 'shell', arguments: command }))
    const { code } = await turn(at, [{ tool_calls: calls }, { text: 'done' }], flagsOf('full'), { through: alone })
    expect(code).toBe(3)
    outside(at, 'cd docs && git status')
    expect([existsSync(canary), existsSync(join(at.workspace, 'docs/config'))].filter(Boolean).length).toBeLessThan(2)
    expect(existsSync(canary)).toBe(false)
    const receipts: readonly Named[] = JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout)
    expect(receipts.map(({ status }) => status).sort()).toEqual(['allowed', 'denied'])
    expect(receipts.find(({ status }) => status === 'denied')?.error).toContain('settings of git')
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })

  real('are refused at the second of two answers, and the reason is the repository that they make', async () => {
    using at = home()
    const canary = join(at.dir, 'ran')
    mkdirSync(join(at.workspace, 'docs'))
    for (const command of [first, second(canary)])
      expect((await turn(at, [call('shell', command), { text: 'done' }], [], { through: alone })).code).toBe(4)
    const ids: readonly { readonly id: string }[] = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)
    const answers = []
    for (const { id } of ids) answers.push(await at.run(['approvals', 'allow', id]))
    expect(answers.map(({ code }) => code)).toEqual([0, 1])
    expect(answers[1]?.stderr).toContain('docs')
    outside(at, 'cd docs && git status')
    expect(existsSync(canary)).toBe(false)
  })

  real('are refused when an undo would complete them', async () => {
    using at = home()
    const canary = join(at.dir, 'ran')
    mkdirSync(join(at.workspace, 'docs'))
    const full = flagsOf('full')
    const go = async (args: object) => (await turn(at, [call('shell', args), { text: 'done' }], full, { through: alone })).code
    expect(await go(second(canary))).toBe(0)
    expect(await go({ command: 'unlink docs/config; unlink docs/refs/k.txt' })).toBe(0)
    expect(await go(first)).toBe(0)
    const undone = await at.run(['undo', '2'])
    expect([undone.code, undone.stderr]).toEqual([1, expect.stringContaining('docs/config')])
    outside(at, 'cd docs && git status')
    expect(existsSync(canary)).toBe(false)
  })
})

describe('a yes that comes later', () => {
  async function waiting(at: Nest): Promise<string> {
    const { code } = await turn(at, [call('shell', { command: 'mkdir -p hk; echo new > hk/pre-commit' }), { text: 'done' }], [], {
      through: alone,
    })
    expect(code).toBe(4)
    return JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)[0].id
  }
  const cases: { readonly [name: string]: { change: (at: Nest) => unknown; says: string; back?: (at: Nest) => unknown } } = {
    'applies nothing while the emergency stop is set': {
      change: (at) => at.run(['estop', '--reason', 'stop it']),
      says: 'estop: stop it',
      back: (at) => at.run(['estop', '--clear']),
    },
    'applies nothing to paths that are forbidden meanwhile': {
      change: (at) => at.config(everyTool.replace(/forbidden_paths = \[/, `forbidden_paths = ["${at.workspace}/hk", `)),
      says: 'forbidden path',
      back: (at) => at.config(everyTool),
    },
    'applies nothing at a level that is readonly meanwhile': {
      change: (at) => at.config(everyTool.replace(/autonomy = "\w+"/, 'autonomy = "readonly"')),
      says: 'readonly',
      back: (at) => at.config(everyTool),
    },
    'applies nothing to another folder of that name': {
      change(at) {
        renameSync(at.workspace, `${at.workspace}-moved`)
        mkdirSync(at.workspace)
      },
      says: 'is another one now',
      back(at) {
        rmSync(at.workspace, { recursive: true })
        renameSync(`${at.workspace}-moved`, at.workspace)
      },
    },
    'applies nothing to a folder that git takes hooks from meanwhile': {
      change: (at) => outside(at, `${init} && git config core.hooksPath hk`),
      says: 'name it as a hook',
      back: (at) => outside(at, 'git config --unset core.hooksPath'),
    },
  }
  for (const [name, { change, says, back }] of Object.entries(cases))
    real(`${name}, and afterwards it does`, async () => {
      using at = home()
      const id = await waiting(at)
      await change(at)
      const { code, stderr } = await at.run(['approvals', 'allow', id])
      expect([code, stderr]).toEqual([1, expect.stringContaining(says)])
      expect(existsSync(join(at.workspace, 'hk'))).toBe(false)
      await back?.(at)
      expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
      expect(existsSync(join(at.workspace, 'hk/pre-commit'))).toBe(true)
      expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
    })

  real('asks again, with the whole, when the changes mean something else by then', async () => {
    using at = home()
    mkdirSync(join(at.workspace, 'docs'))
    const { code } = await turn(at, [part('refs/k.txt'), { text: 'done' }], [], { through: alone })
    expect(code).toBe(4)
    const id = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)[0].id
    outside(at, "mkdir -p docs/objects && echo 'ref: refs/heads/main' > docs/HEAD")
    expect(await at.run(['approvals', 'allow', id])).toMatchObject({ code: 1, stderr: expect.stringContaining('a new git repository') })
    expect(existsSync(join(at.workspace, 'docs/refs'))).toBe(false)
    expect((await at.run(['approvals', 'show', id])).stdout).toContain('a new git repository')
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    expect(existsSync(join(at.workspace, 'docs/refs/k.txt'))).toBe(true)
  })

  real('an emergency stop stops undo and redo too, and clearing it lets them through', async () => {
    using at = home()
    expect((await turn(at, [part('a.txt'), { text: 'done' }], flagsOf('full'))).code).toBe(0)
    await at.run(['estop', '--reason', 'no more'])
    expect(await at.run(['undo'])).toMatchObject({ code: 1, stderr: expect.stringContaining('estop: no more') })
    await at.run(['estop', '--clear'])
    expect((await at.run(['undo'])).code).toBe(0)
    await at.run(['estop', '--reason', 'no more'])
    expect(await at.run(['changes', 'redo'])).toMatchObject({ code: 1, stderr: expect.stringContaining('estop: no more') })
    expect(existsSync(join(at.workspace, 'docs'))).toBe(false)
  })
})
