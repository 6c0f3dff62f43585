/** Ways to make the operator's own git run a program: each is real, and a command in a private view cannot leave any of them behind. */

import { describe, expect, test } from 'bun:test'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { type Ground, ground } from './hostile.ts'

const real = test.if(needs('bwrap') && needs('git'))

type Way = {
  /** What the operator has, made by the operator. */
  readonly before: (at: Ground) => string
  /** What the command does. */
  readonly attack: (at: Ground) => string
  /** What the operator types afterwards. */
  readonly trigger?: string
}

const repository = () => 'git init -q . && echo 1 > a && git add a && git commit -qm one'
const nothing = () => 'true'
const put = (path: string, text: string) => `mkdir -p "$(dirname '${path}')" && cat > '${path}' <<'EOT'\n${text}\nEOT\n`
const shape = (folder: string, config: string) =>
  `mkdir -p ${folder}/objects ${folder}/refs && echo 'ref: refs/heads/main' > ${folder}/HEAD && ${put(`${folder}/config`, config)}`
const hook = ({ canary }: Ground) => `#!/bin/sh\ntouch ${canary}`
const deep = (folder: string) => ({
  before: () => `mkdir -p ${folder} && cd ${folder} && ${repository()}`,
  attack: ({ trap }: Ground) => put(`${folder}/.git/config`, trap),
  trigger: `cd ${folder} && git status`,
})

const ways: { readonly [name: string]: Way } = {
  'a nested repository with a program in its settings, added to the outer one': {
    before: repository,
    attack: ({ trap }) =>
      `git init -q vendor && cd vendor && git -c user.name=n -c user.email=e commit -q --allow-empty -m x && cd .. && git add vendor; ${put('vendor/.git/config', trap)}`,
  },
  'a repository without the name .git in the workspace itself': {
    before: nothing,
    attack: ({ trap }) => shape('.', `${trap}\tworktree = .`),
  },
  'a repository without the name .git in a folder': {
    before: repository,
    attack: ({ trap }) => shape('lib', `${trap}\tworktree = .`),
    trigger: 'cd lib && git status',
  },
  'a worktree whose common folder is elsewhere': {
    before: () => `${repository()} && git worktree add -q wt`,
    attack: ({ trap }) => `${shape('lib', trap)}cp -r .git/objects .git/refs lib && echo "$PWD/lib" > .git/worktrees/wt/commondir`,
    trigger: 'cd wt && git status',
  },
  'a repository four folders deep': deep('a/b/c/d'),
  'a repository in a folder with a dot': deep('.cache/x'),
  'a repository in node_modules': deep('node_modules/m'),
  'a repository behind thousands of folders': {
    ...deep('z/z'),
    before: () => `mkdir -p $(seq 1 4000 | sed 's/^/f/') && ${deep('z/z').before()}`,
  },
  'an archive with a repository in it': {
    before: nothing,
    attack: ({ trap }) =>
      `mkdir -p /tmp/p/pkg && cd /tmp/p/pkg && git init -q . && ${put('.git/config', trap)} cd .. && tar cf x.tar pkg && cd "$OLDPWD" && cd "$WS" && tar xf /tmp/p/x.tar`,
    trigger: 'cd pkg && git status',
  },
  'a file in the folder that core.hooksPath names': {
    before: () => `${repository()} && mkdir -p tools/hooks && touch tools/hooks/x && git config core.hooksPath tools/hooks`,
    attack: (at) => `${put('tools/hooks/pre-commit', hook(at))} chmod +x tools/hooks/pre-commit`,
    trigger: 'git commit -q --allow-empty -m two',
  },
  'an instruction of a stopped rebase': {
    before: () =>
      `${repository()} && git checkout -q -b x && echo 2 > a && git commit -qam two && git checkout -q - && echo 3 > a && git commit -qam three && git checkout -q x; git rebase -q -; true`,
    attack: ({ canary }) => `echo "exec touch ${canary}" >> .git/rebase-merge/git-rebase-todo`,
    trigger: 'git checkout -q --theirs a; git add a; git rebase --continue',
  },
}

const more: { readonly [name: string]: Way } = {
  'a hook in the repository itself': {
    before: repository,
    attack: (at) => `${put('.git/hooks/post-commit', hook(at))} chmod +x .git/hooks/post-commit`,
    trigger: 'git commit -q --allow-empty -m two',
  },
  'a .git file that leads to a repository made elsewhere': {
    before: nothing,
    attack: ({ trap }) => `${shape('fixtures/x', `${trap}\tworktree = ../..`)}echo 'gitdir: fixtures/x' > .git`,
  },
  'a .git file that leads to a hostile repository which was there': {
    before: ({ trap }) => shape('fixtures/x', trap),
    attack: () => "mkdir sub && echo 'gitdir: ../fixtures/x' > sub/.git",
    trigger: 'cd sub && git status',
  },
  'settings that lay there before the folder became a repository': {
    before: ({ trap }) => put('lib/config', `${trap}\tworktree = .`),
    attack: () => "mkdir lib/objects lib/refs && echo 'ref: refs/heads/main' > lib/HEAD",
    trigger: 'cd lib && git status',
  },
  'a program that the settings already name': {
    before: () =>
      `${repository()} && mkdir tools && printf '#!/bin/sh\\n' > tools/monitor && chmod +x tools/monitor && git config core.fsmonitor ./tools/monitor`,
    attack: (at) => put('tools/monitor', hook(at)),
  },
  'a file of settings that the settings include': {
    before: () => `${repository()} && echo > shared && git config include.path ../shared`,
    attack: ({ trap }) => put('shared', trap),
  },
  'a link in the place of the repository': {
    before: repository,
    attack: ({ trap }) => `mv .git old 2>/dev/null || cp -r .git old; rm -rf .git; ln -s old .git; ${put('old/config', trap)}`,
  },
  'a merge strategy of a stopped rebase that is a path': {
    before: () =>
      `${repository()} && git checkout -q -b x && echo 2 > a && git commit -qam two && echo 4 > b && git add b && git commit -qam four && git checkout -q - && echo 3 > a && git commit -qam three && git checkout -q x; git rebase -q -; true`,
    attack: (at) => `mkdir git-merge-x && ${put('evil', hook(at))} chmod +x evil && echo 'x/../evil' > .git/rebase-merge/strategy`,
    trigger: 'git checkout -q --theirs a; git add a; git rebase --continue',
  },
}

/** One way of each kind: settings of a nested repository, a repository without its name, a hook, a rebase, a .git file and a link. */
const oneOfEachKind = [
  'a nested repository with a program in its settings, added to the outer one',
  'a repository without the name .git in a folder',
  'a file in the folder that core.hooksPath names',
  'an instruction of a stopped rebase',
  'a .git file that leads to a repository made elsewhere',
  'a link in the place of the repository',
]
const tried = Object.entries({ ...ways, ...more }).filter(([name]) => isDeep || oneOfEachKind.includes(name))

describe.each(tried)('%s', (_, way) => {
  const trigger = way.trigger ?? 'git status'

  real(
    'runs a program when it is there',
    async () => {
      using at = await ground()
      at.own(way.before(at))
      at.handOver()
      const attacked = at.outside(`WS='${at.workspace}'; ${way.attack(at)}`)
      expect([attacked, at.hasRun()]).toEqual([attacked, false])
      const printed = at.outside(trigger)
      expect([attacked, printed, at.hasRun()]).toEqual([attacked, printed, true])
    },
    120_000,
  )

  real(
    'is refused, whatever was approved, and afterwards nothing runs',
    async () => {
      using at = await ground()
      at.own(way.before(at))
      const review = await at.judge(`WS='${at.workspace}'; ${way.attack(at)}`)
      expect(review).toMatchObject({ verdict: 'deny', rule: expect.stringMatching(/^changes\.(git|protected)$/) })
      at.handOver()
      at.outside(trigger)
      expect(at.hasRun()).toBe(false)
    },
    120_000,
  )
})

test('there are eleven ways that were once found, and more', () => {
  expect(Object.keys(ways)).toHaveLength(11)
  expect(tried).toHaveLength(isDeep ? 19 : oneOfEachKind.length)
})
