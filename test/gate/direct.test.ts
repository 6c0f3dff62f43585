/** A command that works on the workspace itself needs a person at every level, and what it leaves for other programs to run is moved aside. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const confined = test.if(needs('bwrap', 'git'))
const landlocked = test.if(needs('git'))

const deep = 'a/b/c/d/e'
const program = (at: string, canary: string) => `printf '#!/bin/sh\\ntouch ${canary}\\n' > ${at}; chmod +x ${at}`
const settings = (canary: string) =>
  `[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = touch ${canary};:\\n`

/** What a script leaves, where the user then works, and what must be gone. */
const ways: {
  readonly [name: string]: (canary: string) => { readonly script: string; readonly gone: readonly string[]; readonly at: string }
} = {
  'a nested repository whose settings name a program': (canary) => ({
    script: `git init -q ${deep}; git -C ${deep} config core.fsmonitor 'touch ${canary};:'`,
    gone: [`${deep}/.git`],
    at: deep,
  }),
  'hooks in a nested repository': (canary) => ({
    script: `git init -q ${deep}; mkdir -p ${deep}/.git/hooks; ${program(`${deep}/.git/hooks/pre-commit`, canary)}; ${program(`${deep}/.git/hooks/post-index-change`, canary)}`,
    gone: [`${deep}/.git`],
    at: deep,
  }),
  'a bare repository under an ordinary name': (canary) => ({
    script: `mkdir -p ${deep}/data/objects ${deep}/data/refs; cd ${deep}/data; echo 'ref: refs/heads/m' > HEAD; printf '${settings(canary)}' > config`,
    gone: [`${deep}/data`],
    at: `${deep}`,
  }),
  'files that shells and editors obey': () => ({
    script: `mkdir -p ${deep}/.vscode; echo x > ${deep}/.envrc; echo '{}' > ${deep}/.vscode/tasks.json`,
    gone: [`${deep}/.vscode`, `${deep}/.envrc`],
    at: deep,
  }),
  'programs in the folder of core.hooksPath': (canary) => ({
    script: `mkdir -p tools/git; ${program('tools/git/pre-commit', canary)}; ${program('tools/git/post-index-change', canary)}`,
    gone: ['tools/git/pre-commit', 'tools/git/post-index-change'],
    at: '.',
  }),
  'an old folder that gets the name of core.hooksPath': (canary) => ({
    script: `mv tools/git tools/was; mv old tools/git; : ${canary}`,
    gone: ['tools/git/pre-commit'],
    at: '.',
  }),
  'an old folder that gets a protected name': () => ({
    script: `mkdir -p ${deep}; mv plain ${deep}/.vscode`,
    gone: [`${deep}/.vscode`],
    at: deep,
  }),
  'the missing parts of a repository': () => ({
    script: 'mkdir docs/objects docs/refs; echo "ref: refs/heads/m" > docs/HEAD',
    gone: ['docs/HEAD'],
    at: 'docs',
  }),
  'a repository below a name that is no UTF-8': (canary) => ({
    script: `d=$(printf 'a/\\377x'); mkdir -p "$d"; git init -q "$d/n"; git -C "$d/n" config core.fsmonitor 'touch ${canary};:'`,
    gone: [],
    at: 'a/*/n',
  }),
}

/** The user's own work in a folder, with a git that nothing confines. */
function userWorks(at: Nest, folder: string): void {
  const script = `cd ${folder} || exit; git status; echo x > x.txt; git add x.txt; git -c user.name=n -c user.email=e commit -q -m x; for d in */; do (cd "$d" && git status); done`
  Bun.spawnSync(['sh', '-c', script], { cwd: at.workspace, env: { PATH: Bun.env.PATH ?? '', HOME: at.home } })
}

function project(at: Nest, canary: string): void {
  for (const words of [
    ['init', '-q'],
    ['config', 'core.hooksPath', 'tools/git'],
  ])
    Bun.spawnSync(['git', '-C', at.workspace, ...words])
  at.file('plain/tasks.json', '{}')
  at.file('docs/config', settings(canary).replaceAll('\\n', '\n').replaceAll('\\t', '\t'))
  at.file('tools/git/pre-commit', 'mine')
  at.file('old/pre-commit', `#!/bin/sh\ntouch ${canary}\n`)
  Bun.spawnSync(['chmod', '+x', join(at.workspace, 'old/pre-commit')])
}

const direct = (more: object = {}) => [call('shell', { command: 'bash x.sh', direct: true, ...more }), { text: 'So: {{last_tool_result}}' }]
const full = ['--autonomy', 'full']

describe('in full, with security.direct = "allow"', () => {
  confined.each(Object.keys(ways).slice(0, isDeep ? undefined : 5))(
    '%s: moved aside, the call ends denied, and git of the user runs nothing',
    async (name) => {
      using at = home('', 'direct = "allow"\n')
      const canary = join(at.home, 'canary')
      const way = ways[name]?.(canary)
      if (way === undefined) throw new Error('there is no such way')
      project(at, canary)
      at.file('x.sh', way.script)
      const ran = await turn(at, direct(), full, { through: alone })
      expect([ran.code, ran.stdout]).toEqual([3, expect.stringContaining('changes.direct')])
      for (const path of way.gone)
        expect([path, existsSync(join(at.workspace, path)), ran.stdout]).toEqual([path, false, expect.any(String)])
      userWorks(at, way.at)
      expect(existsSync(canary)).toBe(false)
    },
  )

  confined('what was moved aside is shown and comes back by its name, and by no other undo; a harmless command ends well', async () => {
    using at = home('', 'direct = "allow"\n')
    at.file('x.sh', `mkdir -p ${deep}; echo mine > ${deep}/.envrc; echo ok > made`)
    const ran = await turn(at, direct(), full, { through: alone })
    const [, set = ''] = /braidclaw undo ([\w/-]+)/.exec(ran.stdout) ?? []
    expect((await at.run(['changes', 'show', set])).stdout).toContain(`${deep}/.envrc`)
    const other = await at.run(['undo'])
    expect([other.code, existsSync(join(at.workspace, deep, '.envrc'))]).toEqual([1, false])
    expect((await at.run(['undo', set])).code).toBe(0)
    expect(readFileSync(join(at.workspace, deep, '.envrc'), 'utf8')).toBe('mine\n')
    at.file('x.sh', 'echo more >> made; git init -q repository')
    const well = await turn(at, direct(), full, { through: alone })
    expect([well.code, readFileSync(join(at.workspace, 'made'), 'utf8'), existsSync(join(at.workspace, deep, '.envrc'))]).toEqual([
      0,
      'ok\nmore\n',
      true,
    ])
  })
})

describe('without that setting', () => {
  confined.each(isDeep ? [[full], [['--auto']], [[]]] : [[full]])(
    'a call with direct asks, and the question names what it gives up: %p',
    async (level) => {
      using at = home()
      at.file('x.sh', 'echo x > made')
      for (const script of [direct(), direct({ command: 'ls' })]) {
        const { code, stderr } = await turn(at, script, level, { through: alone })
        expect([code, stderr]).toEqual([4, expect.stringContaining('without a private view: its changes take effect at once')])
      }
      expect(existsSync(join(at.workspace, 'made'))).toBe(false)
    },
  )

  confined('"deny" refuses it at every level', async () => {
    using at = home('', 'direct = "deny"\n')
    const { code, stdout } = await turn(at, direct({ command: 'ls' }), full, { through: alone })
    expect([code, stdout]).toEqual([3, expect.stringContaining('autonomy.direct_refused')])
  })
})

landlocked('where no view is possible, what a command leaves is moved aside too', async () => {
  using at = home()
  at.file('x.sh', `mkdir -p ${deep}/.git/hooks; ${program(`${deep}/.git/hooks/pre-commit`, '/tmp/never')}`)
  const script = [call('shell', { command: 'bash x.sh' }), { text: 'So: {{last_tool_result}}' }]
  const { code, stdout } = await turn(at, script, [...full, '--sandbox', 'landlock'], { through: alone })
  expect([code, stdout]).toEqual([3, expect.stringContaining('changes.direct')])
  expect(existsSync(join(at.workspace, deep, '.git'))).toBe(false)
})
