/** What an operator forbids inside the workspace, and what links lead to, stays out of reach of the shell and the file tools together. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hasBubblewrap } from '../../src/sandbox/fixture.ts'
import { type Nest, nest } from '../support/cli.ts'
import { alone, call, everyTool, turn } from '../support/turns.ts'

const secret = 'forbidden-bytes'

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** `~/.ssh` is a link into the workspace; `secret/` and `later` are forbidden by name. */
function home(more: { readonly [key: string]: string } = {}): Nest {
  const at = nest()
  const forbidden = '"/etc", "~/.ssh", "~/braidclaw-workspace/secret", "~/braidclaw-workspace/later"'
  const lines = Object.entries({ forbidden_paths: `[${forbidden}]`, autonomy: '"full"', ...more }).map(
    ([key, value]) => `${key} = ${value}`,
  )
  at.config(
    everyTool.replace(/(forbidden_paths|autonomy|workspace_only) = .*\n/g, '').replace('[security]\n', `[security]\n${lines.join('\n')}\n`),
  )
  for (const path of ['secret/key', 'secret/deep/key', 'ssh/id']) write(join(at.workspace, path), `${secret}\n`)
  write(join(at.workspace, 'open.txt'), 'open-bytes\n')
  symlinkSync(join(at.workspace, 'ssh'), join(at.home, '.ssh'))
  symlinkSync('secret', join(at.workspace, 'alias'))
  return at
}

const scripts = [
  'grep -rn forbidden .',
  'find . -type f -exec cat {} +',
  'cat */k* */*/k*',
  'cp -r s* y',
  'mv secret other',
  'bash -c "cat $(ls -d s*)/*"',
  'for f in */*; do cat "$f"; done',
  'cat alias/key ssh/id secret/key',
  'mkdir -p later && cp open.txt later/x',
]

const confined = test.if(hasBubblewrap())

confined('nothing that the shell does shows a forbidden path of the workspace, and a file tool afterwards finds none either', async () => {
  using at = home()
  const copies = ['y/key', 'y/secret/key', 'y/ssh/id', 'other/key', 'later/x']
  const calls = (name: string, inputs: readonly object[]) => ({ tool_calls: inputs.map((input) => ({ name, arguments: input })) })
  const script = [
    calls(
      'shell',
      scripts.map((command) => ({ command })),
    ),
    calls(
      'file_read',
      copies.map((path) => ({ path })),
    ),
    { text: 'over' },
  ]
  const { stdout, stderr } = await turn(at, script, ['--output-format', 'stream-json'])
  expect(stdout.match(/"type":"tool_result"/g)).toHaveLength(scripts.length + copies.length)
  expect(stdout).toContain('open-bytes')
  expect(`${stdout}${stderr}`).not.toContain(secret)
  expect(['secret/key', 'secret/deep/key', 'ssh/id'].map((path) => readFileSync(join(at.workspace, path), 'utf8'))).toEqual(
    Array.from({ length: 3 }, () => `${secret}\n`),
  )
  expect(existsSync(join(at.workspace, 'later'))).toBe(false)
})

test('a forbidden path that is a link is forbidden under its real name, also for reading alone', async () => {
  using at = home({ autonomy: '"readonly"' })
  for (const path of ['ssh/id', 'alias/key', 'secret/key', './ssh/../ssh/id']) {
    const { code, stderr } = await at.run(['tool', 'run', 'file_read', '--json', JSON.stringify({ path })])
    expect([path, code]).toEqual([path, 3])
    expect(stderr).toContain('path.forbidden')
  }
})

describe('a link to an outside place', () => {
  test('is refused as what it leads to, and the refusal names that', async () => {
    using at = home()
    symlinkSync('/etc/passwd', join(at.workspace, 'pw'))
    const { code, stderr } = await at.run(['tool', 'run', 'shell', '--json', '{"command":"cat pw"}'])
    expect(code).toBe(3)
    expect(stderr).toContain('"pw" leads through a symbolic link to "/etc/passwd"')
  })

  /** Outside is permitted, and /usr can be read in the sandbox. */
  const permissive = (): Nest => {
    const at = home({ autonomy: '"supervised"', workspace_only: 'false', ask: '"before"' })
    symlinkSync('/usr/bin/true', join(at.workspace, 'data'))
    return at
  }
  const script = [call('shell', { command: 'head -c 4 data' }), { text: 'So: {{last_tool_result}}' }]

  confined('that is permitted is shown in the question', async () => {
    using at = permissive()
    const { stdout } = await at.terminal(['agent', '-m', 'go'], [['[y/N/a]', 'y\r']], {
      env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture(script) },
    })
    expect(stdout).toContain(`[data → ${realpathSync('/usr/bin/true')}]`)
    expect(stdout).toContain('ELF')
  })

  confined.each([
    [false, 0, 'ELF'],
    [true, 4, ''],
  ])('gets a yes for its end alone (swapped afterwards: %p)', async (swapped, code, says) => {
    using at = permissive()
    const { stderr } = await turn(at, script, [], { through: alone })
    const [, id = ''] = /braidclaw approvals allow (\S+),/.exec(stderr) ?? []
    expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
    if (swapped) {
      rmSync(join(at.workspace, 'data'))
      symlinkSync('/usr/bin/false', join(at.workspace, 'data'))
    }
    const again = await turn(at, script, ['-c'], { through: alone })
    expect([again.code, again.stdout]).toEqual([code, expect.stringContaining(says)])
  })
})
