/** Help with examples, version, and completion in real shells. */

import { describe, expect, test } from 'bun:test'
import { existsSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../package.json'
import { pages } from '../../scripts/docs.ts'
import { below } from '../../src/cli/args/command.ts'
import { commands as all } from '../../src/cli/commands/list.ts'
import { executable, type Nest, nest } from '../support/cli.ts'
import { home } from '../support/turns.ts'

describe('help', () => {
  const commands = [
    'agent', 'init', 'onboard', 'doctor', 'trust', 'estop', 'completion',
    'filter', 'session load', 'session append', 'session count', 'session clear', 'reset', 'compose', 'log',
    'config show', 'config validate', 'config schema', 'provider list', 'provider test', 'tool list', 'tool run', 'policy explain',
    'memory list', 'memory search', 'memory show', 'memory clear', 'memory export',
    'receipt list', 'receipt show', 'receipt verify', 'receipt anchor',
    'serve', 'service install', 'service start', 'service status', 'service logs', 'token new', 'token list', 'token revoke',
    'schedule add', 'schedule list', 'home backup', 'home restore', 'home prune', 'cost',
  ] // biome-ignore format: a list to be read

  test.each(commands)('%s: an example with its meaning', async (command) => {
    using at = nest()
    const { code, stdout, stderr } = await at.run([...command.split(' '), '--help'])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(new RegExp(`^USAGE\n  braidclaw ${command} ?.*\n    \\S`))
    expect((await at.run(['help', ...command.split(' ')])).stdout).toBe(stdout)
  })

  test('the first page fits a terminal of 24 lines with its prompt, and each name in it is a command', async () => {
    using at = nest()
    const { code, stdout, stderr } = await at.run(['--help'])
    expect([code, stderr]).toEqual([0, ''])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.length).toBeLessThanOrEqual(23)
    expect(lines.filter((line) => line.length > 80)).toEqual([])
    expect(lines.filter((line) => /^[A-Z ]+$/.test(line))).toEqual(['TALK', 'SET UP', 'LOOK BACK', 'SERVE'])
    const names = lines.flatMap((line) => /^ {2}([a-z, ]+?) {2,}/.exec(line)?.[1]?.split(', ') ?? [])
    expect(names.length).toBeGreaterThan(30)
    expect(names.filter((name) => !all.some((row) => row.name === name))).toEqual([])
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  test('its last line names the page that lists every command', async () => {
    using at = nest()
    const [first, whole] = [await at.run(['--help']), await at.run(['help', 'all'])]
    expect(first.stdout.trimEnd().split('\n').at(-1)).toStartWith('braidclaw help all ')
    expect([whole.code, whole.stderr]).toEqual([0, ''])
    const missing = below(all).filter(({ name }) => !whole.stdout.includes(`\n  ${name} `))
    expect(missing).toEqual([])
    expect(whole.stdout).toContain('\nEXIT CODES\n')
    expect((await at.run(['--help-all'])).stdout).toBe(whole.stdout)
  })

  test('every page fits 80 columns, but for command lines, which are there to be copied', async () => {
    using at = nest()
    const text = `${(await pages())['docs/commands.md']}\n${(await at.run(['help', 'all'])).stdout}`
    const wide = text.split('\n').filter((line) => line.length > 80 && !line.startsWith('  braidclaw '))
    expect(wide).toEqual([])
  })

  test('that of the agent names the limits of a turn', async () => {
    using at = nest()
    const { stdout } = await at.run(['agent', '--help'])
    const text = stdout.replaceAll('\n', ' ')
    expect(text).toContain('max_tool_rounds 100, max_same_results 5, tool_timeout_s 30, shell_timeout_s 120, shell_timeout_max_s 600')
  })

  test('what goes on in the next line stands under its beginning, and a choice right behind its meaning', async () => {
    using at = nest()
    const { stdout } = await at.run(['help', 'agent'])
    expect(stdout).toContain(`
  -m [--message]           Run one turn with this message and exit; text on
                           stdin is appended
`)
    expect(stdout).toContain(`
     [--output-format]     text (default), one JSON object, or one AgentEvent a
                           line [text|json|stream-json]
     [--json]              Print JSON for machines
`)
    expect((await at.run(['help', 'policy'])).stdout).toEndWith(`
COMMANDS
  explain  Show what the gate and your rules decide about a command or a call:
           verdict, risk, rule. Runs nothing
  test     Check a table of expectations: which calls are allowed, asked about
           or denied, and by which rule. Runs nothing
`)
  })

  test('--version', async () => {
    using at = nest()
    expect(await at.run(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
    expect(await at.run(['-v'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
  })
})

describe('completion', () => {
  /** Completes each line in a real bash; returns what it proposes. */
  async function proposed(at: Nest, lines: readonly string[]): Promise<readonly string[]> {
    symlinkSync(executable, join(at.dir, 'braidclaw'))
    const script = `source <(braidclaw completion bash)
      try() { COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}; COMP_WORDS=($COMP_LINE); [[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); COMPREPLY=(); _braidclaw; echo "\${COMPREPLY[*]}"; }
      complete -p braidclaw
      ${lines.map((line) => `try "${line}"`).join('; ')}`
    const env = { ...at.env, PATH: `${at.dir}:${at.env.PATH}` }
    const bash = Bun.spawn(['bash', '--norc', '-c', script], { cwd: at.workspace, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    const [stdout, stderr] = await Promise.all([bash.stdout.text(), bash.stderr.text()])
    expect(stderr).toBe('')
    const [registered, ...found] = stdout.trimEnd().split('\n')
    expect(registered).toBe('complete -o default -F _braidclaw braidclaw')
    return found.map((line) => line.trim())
  }

  test('in a real bash: commands, sub-commands, flags, values and names', async () => {
    using at = home()
    const expected = {
      'braidclaw me': 'memory',
      'braidclaw memory s': 'search show',
      'braidclaw agent --out': '--output-format',
      'braidclaw agent --output-format j': 'json',
      'braidclaw provider test op': 'openai_compatible',
      'braidclaw tool run file_w': 'file_write',
      'braidclaw nonsense ': '',
      'braidclaw help al': 'all',
      'braidclaw completion z': 'zsh',
    }
    expect(await proposed(at, Object.keys(expected))).toEqual(Object.values(expected))
  })

  test('in a real bash: the commands of a server, and the names of its tokens and schedules', async () => {
    using at = home()
    expect(await proposed(at, ['braidclaw token revoke l'])).toEqual([])
    expect(existsSync(join(at.home, '.braidclaw/memory.sqlite'))).toBe(false)
    rmSync(join(at.dir, 'braidclaw'))
    for (const name of ['laptop', 'lost']) await at.run(['token', 'new', name])
    await at.run(['token', 'revoke', 'lost'])
    await at.run(['schedule', 'add', 'report', '--cron', '0 9 * * *', '-m', 'go'])
    const expected = {
      'braidclaw serv': 'service serve',
      'braidclaw service ': 'install start stop restart status logs uninstall',
      'braidclaw service install --manager ': 'systemd launchd background',
      'braidclaw token r': 'revoke rotate',
      'braidclaw token revoke l': 'laptop',
      'braidclaw token new x --scope a': 'approve admin',
      'braidclaw schedule p': 'pause',
      'braidclaw schedule show r': 'report',
      'braidclaw schedule add x --missed ': 'run-once skip run-all',
      'braidclaw cost --by co': 'conversation',
      'braidclaw home ': 'backup restore prune',
      'braidclaw home backup --w': '--with-keys',
      'braidclaw serve --log': '--log-file',
    }
    expect(await proposed(at, Object.keys(expected))).toEqual(Object.values(expected))
  })

  test.each(['zsh', 'fish'])('%s gets a script of its own that asks us, with meanings', async (shell) => {
    using at = nest()
    const { code, stdout } = await at.run(['completion', shell])
    expect([code, stdout.includes(`braidclaw __complete ${shell}`)]).toEqual([0, true])
    const asked = await at.run(['__complete', shell, 'mem'])
    expect(asked.stdout).toMatch(/^memory[:\t]List, search/)
    const found = Bun.which(shell)
    if (found) expect(Bun.spawnSync([found, '-n', '-c', stdout]).exitCode).toBe(0)
  })
})
