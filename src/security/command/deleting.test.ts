/**
 * Tests what removes files: whatever a list says, nothing removes everything, however it is spelt; a removal of single files is forbidden
 * where the list names rm, and by the usual list where no private view contains it.
 */
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell, not JavaScript

import { describe, expect, test } from 'bun:test'
import { callOf, gateOf } from '../gate.fixture.ts'
import type { Gate } from '../gate.ts'
import { forbiddenWithoutView, type Policy, usualForbidden } from '../policy.ts'
import { defaultAllow } from './names.ts'

const view = { confined: true, transaction: true }
const modes = [view, { confined: true, transaction: false }, { confined: false, transaction: false }]
const levels = [
  { autonomy: 'readonly' },
  { autonomy: 'supervised' },
  { autonomy: 'supervised', approveAllMedium: true },
  { autonomy: 'full' },
] as const
const lists = [usualForbidden, [], ['rm', 'shutdown', 'reboot', 'mkfs', 'dd']]

const gates = new Map<string, Gate>()

function judged(command: string, fields: Partial<Policy> = {}, commands = view) {
  const key = JSON.stringify([fields, commands])
  const policy = { allowCommands: defaultAllow, forbiddenCommands: usualForbidden, ...fields }
  const gate = gates.get(key) ?? gateOf(policy, { resolve: (name) => `/usr/bin/${name}`, commands })
  gates.set(key, gate)
  return gate.judge(callOf('shell', { command }))
}

/** The workspace is /home/u/ws, the home folder /home/u. */
const everything = [
  ...[
    'rm -rf /',
    'rm -rf *',
    'rm -rf ~',
    'rm -rf .',
    'rm -rf ..',
    'rm -r -f /',
    'rm -f -r /',
    'rm -fr /',
    'rm -Rf /',
    'rm -R /',
    'rm -rvf /',
  ],
  ...[
    'rm --recursive --force /',
    'rm --recursive /',
    'rm --rec --force /',
    'rm --r /',
    'rm / -rf',
    'rm -rf -- /',
    'rm -rf // ',
    'rm -rf /.',
  ],
  ...[
    'rm -rf /*',
    'rm -fr ./*',
    'rm -rf ./',
    'rm -rf ./.',
    'rm -rf ../',
    'rm -rf ../*',
    'rm -rf ../..',
    'rm -rf .*',
    'rm -rf *.*',
    'rm -rf {*,.*}',
  ],
  ...[
    'rm -rf .[!.]*',
    'rm -rf [a-z]*',
    'rm -rf **',
    'rm -rf "$HOME"',
    'rm -rf ${HOME}/',
    'rm -rf $HOME/*',
    'rm -rf ~/',
    'rm -rf ~/*',
    'rm -rf ~/.*',
  ],
  ...[
    'rm -rf $PWD',
    'rm -rf "${PWD}"/*',
    'rm -rf "$PWD/"',
    'rm -rf $(pwd)',
    'rm -rf `pwd`/*',
    'rm -rf /home',
    'rm -rf /home/*',
    'rm -rf /home/u',
  ],
  ...[
    'rm -rf /home/u/ws',
    'rm -rf /home/u/ws/*',
    'rm -rf /home/u/w*',
    'rm -rf ../ws',
    'rm -rf build/..',
    'rm -rf ./build/../*',
    'rm -rf /usr',
  ],
  ...[
    'rm -rf /usr/',
    'rm -rf /etc/*',
    'rm -rf /{bin,usr}',
    'rm -rf --no-preserve-root x',
    'rm -rf build /',
    'rm -rf "$X"/*',
    'rm -rf "$X/"',
    'rm -rf /$X',
  ],
  ...[
    'cd / && rm -rf *',
    'cd / && rm -rf usr',
    'cd /; rm -rf .',
    'cd .. && rm -rf ws',
    'cd; rm -rf ws',
    'cd build && rm -rf ../*',
    '(cd /; rm -rf home)',
  ],
  ...[
    '\\rm -rf /',
    '"rm" -rf /',
    "r''m -rf /",
    "$'\\x72m' -rf /",
    '/bin/rm -rf /*',
    '/usr/bin/rm -rf ~',
    '/bin/r? -rf /',
    'r[m] -rf *',
    'command rm -rf /',
  ],
  ...[
    'x=rm; $x -rf /',
    'f=-rf; rm $f /',
    'd=/; rm -rf $d',
    'd=/; rm -rf "$d"*',
    'rm -rf $(echo /)',
    '$(echo rm) -rf /',
    'e() { rm -rf /; }; e',
    'run() { "$@"; }; run rm -rf /',
  ],
  ...[
    'busybox rm -rf /',
    'toybox rm -rf *',
    'sudo rm -rf /',
    'env rm -rf /',
    'env -i rm -rf /',
    'env -S "rm -rf /"',
    'nice rm -rf ~',
    'timeout 9 rm -rf /',
  ],
  ...[
    'nohup rm -rf / &',
    'exec rm -rf /',
    'eval rm -rf /',
    'rm -rf ~+',
    'rm -rf ~+/*',
    'rm -rf ~root',
    '$(which rm) -rf /',
    '$(command -v rm) -rf *',
    '`which rm` -rf ~',
    'eval rm -rf "$HOME"',
    'cd .. && rm -rf $PWD',
    'cd .; rm -rf "$PWD"/*',
    'eval "rm -rf $HOME"',
    'trap "rm -rf /" EXIT',
    "alias x='rm -rf /'",
    'watch rm -rf /',
    'flock l rm -rf /',
  ],
  ...[
    "sh -c 'rm -rf /'",
    'bash -c "rm -rf *"',
    "bash -euo pipefail -c 'cd / && rm -rf *'",
    'sh -c \'rm -rf "$1"\' _ /',
    'echo "rm -rf /" | sh',
    "sh <<< 'rm -rf ~'",
  ],
  ...[
    'bash <<E\nrm -rf /\nE',
    'sh -c "rm -rf / $x"',
    'xargs rm -rf / < f',
    'echo / | xargs rm -rf',
    'echo / | xargs -I{} rm -rf {}',
    "echo '*' | xargs -I% sh -c 'rm -rf %'",
  ],
  ...[
    'ls | xargs -n1 rm -rf /',
    'find / -delete',
    'find . -delete',
    'find -delete',
    'find .. -delete',
    'find ~ -delete',
    'find "$HOME" -delete',
    'find $PWD -delete',
    'find /* -delete',
  ],
  ...[
    'find / -type f -delete',
    'find . -mindepth 1 -delete',
    "find . -name '*' -delete",
    'find . ! -name keep -delete',
    'find . -name x -o -delete',
    'find . -depth -delete',
  ],
  ...[
    'cd / && find . -delete',
    'find . -exec rm -rf {} +',
    'find / -exec rm -rf {} \\;',
    'find . -type f -exec rm {} +',
    'find . -execdir rm -r {} \\;',
    'find /home/u -delete',
  ],
  ...[
    'python3 -c "import os; os.system(\'rm -rf /\')"',
    "python3 -c \"import subprocess; subprocess.run(['rm', '-rf', '/'])\"",
    'perl -e \'system("rm -rf ~")\'',
  ],
  ...[
    "node -e \"require('child_process').execSync('rm -rf *')\"",
    "git -c alias.x='!rm -rf /' x",
    "git rebase -x 'rm -rf /' main",
    'if true; then rm -rf /; fi',
    'true && rm -rf / || true',
  ],
]

/** They remove something that their words name. */
const some = [
  ...[
    'rm x',
    'rm -f a b',
    'rm -rf build',
    'rm -rf ./build/',
    'rm -rf build/*',
    'rm *.o',
    'rm -r src/old*',
    'rm -rf node_modules dist',
    '/bin/rm x',
    'rm -rf /tmp/x',
  ],
  ...[
    "sh -c 'rm x'",
    'ls *.o | xargs rm',
    'rm -rf "$PWD/build"',
    'cd build && rm -rf lib',
    'd=build; rm -rf "$d"',
    'd=build; rm -rf "$d"/*',
    "rm -rf -- '-x'",
    'rm -rf ../other/x',
  ],
  ...[
    "find . -name '*.pyc' -delete",
    'find build -delete',
    'find . -empty -delete',
    'find . -type f -mtime +9 -delete',
    "find . -name '*.o' -exec rm {} +",
    'find src/old -exec rm -r {} +',
  ],
  ...[
    "find . -not -path './a/*' -name '*.log' -delete",
    'python3 -c "import os; os.system(\'rm x\')"',
    'for f in a b; do rm -rf "$f"; done',
    'for f in a b; do rm -rf "$f/x"; done',
    'rm "$x"',
    'cd build && rm -rf "$PWD/lib"',
  ],
]

test('the table holds at least sixty spellings', () => expect(new Set(everything).size).toBeGreaterThanOrEqual(140))

describe('refused at every level, with every list, with a view and without:', () => {
  test.each(everything)('%s', async (command) => {
    for (const forbiddenCommands of lists)
      for (const mode of modes)
        for (const level of levels) {
          const { verdict, rule } = await judged(command, { ...level, forbiddenCommands }, mode)
          expect([verdict, rule]).toEqual(['deny', expect.stringMatching(/^command\.(?:destructive|forbidden)|^path\./)])
        }
  })
  test.each(everything)('%s is refused for what it does, where the list does not name rm', async (command) => {
    const { rule, reason } = await judged(command, { autonomy: 'full' })
    expect([rule, reason]).toEqual(['command.destructive', expect.stringMatching(/everything/)])
  })
})

describe('a removal of single files', () => {
  test.each(some)('%s runs in a view and is forbidden by the usual list elsewhere, and by a list with rm everywhere', async (command) => {
    expect((await judged(command)).rule).toBe('autonomy.transaction')
    expect((await judged(command, { autonomy: 'full' })).verdict).toBe('allow')
    expect((await judged(command, { autonomy: 'readonly' })).rule).toBe('autonomy.readonly')
    for (const level of levels) {
      for (const mode of modes.slice(1)) expect((await judged(command, level, mode)).rule).toMatch(/^command\.forbidden|^path\./)
      expect((await judged(command, { ...level, forbiddenCommands: ['rm'] })).rule).toBe('command.forbidden')
    }
  })

  test('that is refused names the tool that deletes, and find -delete is refused for itself', async () => {
    const reasonOf = async (command: string, forbiddenCommands = usualForbidden, mode = view) =>
      (await judged(command, { forbiddenCommands }, mode)).reason
    expect(await reasonOf('rm -r dir', ['rm'])).toContain('the tool file_delete')
    expect(await reasonOf('rm -rf *')).toContain('the tool file_delete')
    expect(await reasonOf('rm x', usualForbidden, modes[1])).toContain('the tool file_delete')
    expect(await reasonOf("find . -name '*.o' -delete", ['rm'])).toBe(
      'find -delete removes what it finds, which forbidden_commands rules out; use the tool file_delete',
    )
    expect(await reasonOf('find . -delete')).toBe('find . would remove everything there; name a folder, or the files with -name')
  })
})

test('a text that is too large or broken to follow is searched for a removal of everything', async () => {
  const broken = ['sh -c "$x; rm -rf / ("', `${'echo x;'.repeat(40_000)} rm -rf *`, `${'{ '.repeat(40)} rm -r "$HOME"; ${'}; '.repeat(40)}`]
  for (const command of broken)
    expect(await judged(command, { autonomy: 'full', forbiddenCommands: [] })).toMatchObject({
      verdict: 'deny',
      rule: 'command.destructive',
    })
  expect((await judged('sh -c "$x; rm -rf build ("', { autonomy: 'full' })).verdict).toBe('allow')
})

test('the home folder is everything too where the workspace lies elsewhere', async () => {
  const elsewhere = { autonomy: 'full', workspace: '/srv/w/ws' } as const
  for (const command of ['rm -rf ~', 'rm -rf /home/u', 'rm -rf /home/u/*', 'find ~ -delete', 'rm -rf /srv/w', 'rm -rf ../../w'])
    expect([command, (await judged(command, elsewhere)).rule]).toEqual([command, 'command.destructive'])
  for (const command of ['rm -rf ~/x', 'rm -rf /home/u/x/*', 'rm -rf /srv/other', 'rm -rf ../other'])
    expect([command, (await judged(command, elsewhere)).verdict]).toEqual([command, 'allow'])
})

test('the usual list, and one that adds to it, forbids rm without a view; a list of its own says itself', () => {
  expect(forbiddenWithoutView(usualForbidden)).toEqual(['rm', ...usualForbidden])
  expect(forbiddenWithoutView([...usualForbidden, 'curl'])).toContain('rm')
  expect(forbiddenWithoutView(['rm', ...usualForbidden])).toEqual(['rm', ...usualForbidden])
  expect([forbiddenWithoutView([]), forbiddenWithoutView(['dd', 'mkfs'])]).toEqual([[], ['dd', 'mkfs']])
})
