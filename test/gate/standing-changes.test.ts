/** "Always" to the changes of a command: the next time it changes only the same paths, nothing asks; anything else still does. */

import { test as always, expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../support/needs.ts'
import { talk } from '../support/talk.ts'
import { alone, call, home, turn } from '../support/turns.ts'

const test = always.if(needs('bwrap', 'git', 'python3'))

test('an answer to changes holds for this command and these paths, is listed, and is gone once revoked', async () => {
  using at = home()
  at.file('tool.sh', 'date +%s%N > out.txt; test -f more && date > other.txt; true\n')
  const script = [call('shell', { command: 'bash tool.sh' }), { text: 'done' }]
  await talk(at, script, [['[y/', 'a\r']], ['-m', 'go'])
  const first = readFileSync(join(at.workspace, 'out.txt'), 'utf8')
  expect((await at.run(['approvals', 'rules', 'list'])).stdout).toContain('bash tool.sh, while it changes only out.txt')
  expect((await turn(at, script, [], { through: alone })).code).toBe(0)
  expect(readFileSync(join(at.workspace, 'out.txt'), 'utf8')).not.toBe(first)
  at.file('more', '')
  expect((await turn(at, script, [], { through: alone })).code).toBe(4)
  const [{ id }] = JSON.parse((await at.run(['approvals', 'rules', 'list', '--json'])).stdout)
  expect((await at.run(['approvals', 'rules', 'revoke', String(id)])).code).toBe(0)
})

test('an answer to a name holds for this very path in this folder, whatever writes there; other places and kinds still ask', async () => {
  using at = home('', 'approve_all_medium = true\n')
  const file = (path: string, content: string) => [call('file_write', { path, content }), { text: 'done' }]
  const shell = (command: string) => [call('shell', { command }), { text: 'done' }]
  const read = (path: string) => readFileSync(join(at.workspace, path), 'utf8')
  const codes = async (...replies: readonly (readonly object[])[]) => {
    const found: (number | null)[] = []
    for (const each of replies) found.push((await turn(at, each, [], { through: alone })).code)
    return found
  }
  const shown = await talk(at, shell('echo 1 > .toolrc'), [['[y/', 'a\r']], ['-m', 'go'])
  expect(shown.stdout.replaceAll(/\s+/g, ' ')).toContain(`always applied from now on: any change of .toolrc in ${at.workspace}`)
  await talk(at, file('tool.config.js', '1'), [['[y/', 'a\r']], ['-m', 'go'])
  expect([read('.toolrc'), read('tool.config.js')]).toEqual(['1\n', '1'])
  expect(await codes(shell('echo 2 > .toolrc; echo 2 > tool.config.js'), file('.toolrc', '3'))).toEqual([0, 0])
  expect([read('.toolrc'), read('tool.config.js')]).toEqual(['3', '2\n'])
  const others = [shell('mkdir sub; echo x > sub/.toolrc'), shell('chmod +x .toolrc'), shell('echo x > .toolrc; echo x > .other')]
  expect(await codes(...others)).toEqual([4, 4, 4])
  const listed = JSON.parse((await at.run(['approvals', 'rules', 'list', '--json'])).stdout)
  expect(listed).toHaveLength(2)
  expect(
    (await at.run(['approvals', 'rules', 'revoke', String(listed.find(({ scope }: { scope: string }) => scope.includes('.toolrc')).id)]))
      .code,
  ).toBe(0)
  expect(await codes(file('.toolrc', '4'))).toEqual([4])
}, 60_000)

test('what git ignores is applied in supervised without a question, and undone exactly; a set does not ignore its own files', async () => {
  using at = home()
  const git = (...args: readonly string[]) => Bun.spawnSync(['git', ...args], { cwd: at.workspace })
  git('init', '-q')
  at.file('.gitignore', 'dist/\n*.log\n')
  at.file('dist/kept.js', 'old')
  at.file('dist/old.js', 'old')
  git('add', '-f', 'dist/kept.js')
  const codeOf = async (command: string) => (await turn(at, [call('shell', { command }), { text: 'done' }], [], { through: alone })).code
  expect(await codeOf('mkdir -p dist/deep && echo new > dist/deep/a.js && echo new > dist/old.js && echo x > a.log')).toBe(0)
  const read = (path: string) => readFileSync(join(at.workspace, path), 'utf8')
  expect([read('dist/deep/a.js'), read('dist/old.js'), read('a.log')]).toEqual(['new\n', 'new\n', 'x\n'])
  expect((await at.run(['undo'])).code).toBe(0)
  expect([read('dist/old.js'), existsSync(join(at.workspace, 'dist/deep')), existsSync(join(at.workspace, 'a.log'))]).toEqual([
    'old',
    false,
    false,
  ])
  const asking = [
    'echo x > dist/kept.js',
    'echo x > dist/b.js; echo x > src.ts',
    'echo x > dist/.env',
    'echo "out/" >> .gitignore; mkdir out; echo x > out/a.js',
    `python3 -c 'open(".git/info/exclude", "a").write("out/")'; mkdir out; echo x > out/a.js`,
  ]
  for (const command of asking) expect([command, await codeOf(command)]).toEqual([command, 4])
}, 60_000)
