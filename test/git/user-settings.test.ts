/** What the user's own git settings say about every repository is so for commands too, and nothing that they make git run. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'

const real = test.if(needs('bwrap') && needs('git'))

const run = (at: Nest, command: string, env: { readonly [name: string]: string } = {}) =>
  turn(at, [call('shell', { command }), { text: 'It said: {{last_tool_result}}' }], ['--autonomy', 'full'], { env })
const put = (path: string, text: string) => {
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}
const all = 'git config core.autocrlf; git config core.eol; git config init.defaultBranch; git config core.quotePath'

real(
  'nothing that git would run is passed on: filters, aliases, hooks, helpers, pagers, monitors',
  async () => {
    using at = home()
    const canary = join(at.workspace, 'ran')
    const runs = `touch ${canary}`
    const settings = [
      `[core]\n\teol = lf\n\tfsmonitor = "${runs}; false"\n\tpager = ${runs}\n\tsshCommand = ${runs}\n\teditor = ${runs}\n\thooksPath = ${at.home}/hooks`,
      `[filter "x"]\n\tclean = ${runs}\n\tsmudge = ${runs}\n[alias]\n\tst = "!${runs}"\n[credential]\n\thelper = "!${runs}"\n[commit]\n\tgpgSign = true`,
    ]
    put(join(at.home, '.gitconfig'), `${settings.join('\n')}\n`)
    put(join(at.home, '.config/git/attributes'), '* filter=x\n')
    const { stdout } = await run(at, 'git init -q && echo a > a.txt && git add a.txt; git st; git status; git config --list')
    expect(stdout).toContain('core.eol=lf')
    for (const key of ['fsmonitor', 'sshcommand', 'filter.', 'alias.', 'touch', 'gpgsign', 'hookspath', 'pager'])
      expect(stdout).not.toContain(key)
    expect(existsSync(canary)).toBe(false)
  },
  60_000,
)

real(
  'the ignore file and the attributes of the user count in the workspace',
  async () => {
    using at = home()
    put(join(at.home, '.config/git/ignore'), '*.secret\n')
    put(join(at.home, '.config/git/attributes'), '*.crlf text eol=crlf\n')
    put(join(at.workspace, 'a.secret'), 'x')
    put(join(at.workspace, 'b.txt'), 'x')
    const { stdout } = await run(at, 'git init -q && git add -A && git ls-files && git check-attr eol x.crlf')
    expect(stdout).toContain('b.txt\nx.crlf: eol: crlf')
    expect(stdout).not.toContain('a.secret')
  },
  60_000,
)

real(
  'core.excludesFile, XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL, an include and a condition are resolved as git does it',
  async () => {
    using at = home()
    put(join(at.home, '.gitconfig'), '[core]\n\tautocrlf = input\n\texcludesFile = ~/mine\n[include]\n\tpath = more\n')
    put(join(at.home, 'mine'), '*.mine\n')
    put(join(at.home, 'more'), '[init]\n\tdefaultBranch = trunk\n')
    const ignored = 'git init -q; git check-ignore x.mine x.xdg; git symbolic-ref HEAD'
    expect((await run(at, `${ignored}; ${all}`)).stdout).toContain('x.mine\nrefs/heads/trunk\ninput\ntrunk\n')
    put(join(at.dir, 'xdg/git/ignore'), '*.xdg\n')
    put(
      join(at.home, '.gitconfig'),
      `[includeIf "gitdir:${at.workspace}/"]\n\tpath = here\n[includeIf "gitdir:/nowhere/"]\n\tpath = there\n`,
    )
    put(join(at.home, 'here'), '[core]\n\teol = crlf\n[user]\n\tname = Here\n')
    put(join(at.home, 'there'), '[core]\n\tautocrlf = true\n[user]\n\tname = There\n')
    const { stdout } = await run(at, `git check-ignore x.mine x.xdg; git config user.name; ${all}`, {
      XDG_CONFIG_HOME: join(at.dir, 'xdg'),
    })
    expect(stdout).toContain('x.xdg\nHere\ncrlf\n')
    put(join(at.dir, 'global'), '[core]\n\tquotePath = false\n')
    expect((await run(at, all, { GIT_CONFIG_GLOBAL: join(at.dir, 'global') })).stdout).toContain('It said: false')
  },
  60_000,
)
