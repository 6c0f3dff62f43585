import { describe, expect, test } from 'bun:test'
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { confined, hasBubblewrap, place } from '../fixture.ts'
import { install } from '../install.ts'
import { commandLines, receiver } from '../pipes/command-pipes.ts'
import { fixedPath } from '../trial-key.ts'

if (!hasBubblewrap()) console.warn(`sandboxes that wait are not tested: ${install}`)
const real = test.if(hasBubblewrap())

const script = `
const { createSandbox } = await import(${JSON.stringify(join(import.meta.dir, '../create-sandbox.ts'))})
const { spawnPlain } = await import(${JSON.stringify(join(import.meta.dir, '../fixture.ts'))})
const [settings, mode] = process.argv.slice(1)
const created = await createSandbox({ ...JSON.parse(settings), spawnPlain, log() {} })
if (!created.ok) throw new Error(created.missing)
await Bun.sleep(100)
console.log('waiting')
if (mode === 'kill') process.kill(process.pid, 'SIGKILL')`

describe('a sandbox that waits for its command', () => {
  real.each([['kill'], ['exit']])('does nothing when its owner ends by %s, and does not keep it alive', async (mode) => {
    using at = place()
    const words = [process.execPath, '--config=/dev/null', '-e', script, JSON.stringify(at.settings), mode]
    const child = Bun.spawn(words, { env: { PATH: fixedPath }, cwd: at.root, stdio: ['ignore', 'pipe', 'inherit'] })
    expect(await child.stdout.text()).toBe('waiting\n')
    await child.exited
    expect(child.signalCode).toBe(mode === 'kill' ? 'SIGKILL' : null)
    await Bun.sleep(150)
    expect(readdirSync(at.workspace)).toEqual([])
    const alive = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && commandOf(name).includes(at.workspace))
    expect(alive).toEqual([])
  })

  real('is started for a command that only reads as soon as that command is known, and that command gets it', async () => {
    using box = await confined()
    await emptied()
    box.warm({ readOnly: true })
    const [started, ...others] = sandboxes()
    expect([started, others]).toEqual([expect.any(String), []])
    expect((await box.run('echo hello; touch made', { readOnly: true })).stdout).toBe('hello\n')
    expect([sandboxes().includes(started ?? ''), readdirSync(box.workspace)]).toEqual([false, []])
  })

  real('is not started ahead on the workspace itself for a command that writes: place holders must be there first', async () => {
    using box = await confined()
    await emptied()
    box.warm({ view: 'direct' })
    expect(sandboxes()).toEqual([])
  })

  real('starts while another command runs, unless that one writes to the workspace itself', async () => {
    using box = await confined()
    for (const [readOnly, most] of [
      [true, 2],
      [false, 1],
    ] as const) {
      await emptied()
      const running = box.run('sleep 1', { readOnly })
      const seen: number[] = []
      for (let tries = 0; tries < 16; tries++) {
        await Bun.sleep(50)
        seen.push(sandboxes().length)
      }
      expect(Math.max(...seen)).toBe(most)
      await running
    }
  })

  real('is not used when the protected names have changed since', async () => {
    using box = await confined()
    await box.run(':')
    await Bun.sleep(30)
    mkdirSync(join(box.workspace, '.vscode'))
    writeFileSync(join(box.workspace, '.vscode/tasks.json'), 'mine')
    writeFileSync(join(box.workspace, '.mcp.json'), 'mine')
    const { stdout } = await box.run('cat .vscode/tasks.json .mcp.json; echo evil > .vscode/tasks.json; rm -rf .vscode .mcp.json')
    expect(stdout).toBe('minemine')
    expect(readdirSync(box.workspace).toSorted()).toEqual(['.mcp.json', '.vscode'])
  })

  real('is not used when an editor has replaced a protected file or a secret', async () => {
    using ground = place()
    const [settings, secret] = [join(ground.workspace, '.mcp.json'), join(ground.workspace, 'key.pem')]
    for (const path of [settings, secret]) writeFileSync(path, 'old-bytes')
    using box = await confined({ workspace: ground.workspace, secretPaths: [secret, join(ground.workspace, 'later.pem')] })
    const run = (script: string) => box.run(script, { cwd: ground.workspace })
    await run(':')
    await Bun.sleep(30)
    for (const path of [settings, secret]) {
      writeFileSync(`${path}.new`, 'new-bytes')
      renameSync(`${path}.new`, path)
    }
    writeFileSync(join(ground.workspace, 'later.pem'), 'new-bytes')
    const { stdout } = await run('cat .mcp.json; echo evil > .mcp.json; mv .mcp.json x; cat key.pem later.pem; true')
    expect(stdout).toBe('new-bytes')
    expect(readFileSync(settings, 'utf8')).toBe('new-bytes')
  })

  real('is not used when another folder has taken the place of the workspace', async () => {
    using box = await confined()
    await box.run(':')
    await Bun.sleep(30)
    renameSync(box.workspace, `${box.workspace}-old`)
    mkdirSync(box.workspace)
    await box.run('touch made')
    expect([readdirSync(box.workspace), readdirSync(`${box.workspace}-old`)]).toEqual([['made'], []])
  })

  real('was killed by somebody: the next command gets a new one', async () => {
    using box = await confined()
    await Bun.sleep(30)
    for (const name of readdirSync('/proc'))
      if (/^\d+$/.test(name) && commandOf(name).startsWith('/usr/bin/bwrap') && commandOf(name).includes(box.workspace))
        process.kill(Number(name), 'SIGKILL')
    await Bun.sleep(30)
    expect(await box.run('echo ran')).toMatchObject({ code: 0, stdout: 'ran\n' })
  })

  real('leaves no descriptor of its own to the command', async () => {
    using box = await confined()
    expect((await box.run('ls /proc/self/fd')).stdout.trim().split('\n')).toEqual(['0', '1', '2', '3'])
    expect((await box.run('cat; echo end')).stdout).toBe('end\n')
  })
})

describe('the command arrives as it was given', () => {
  const words = [
    '',
    ' ',
    "it's",
    '"',
    '$HOME',
    '`id`',
    '\\',
    '\\n',
    'a\nb',
    '\n\n',
    '-n',
    '*',
    '~',
    'é日本',
    '!',
    'x'.repeat(120_000),
    '\t',
    '#',
    '&&',
    "'; exit 9; '",
  ]

  real('every word of it, and its environment', async () => {
    using box = await confined()
    for (const some of [words, ...words.map((word) => [word.slice(0, 50), 'last'])]) {
      const { stdout } = await box.run('', { argv: ['perl', '-e', 'print join("\\0", @ARGV)', '--', ...some] })
      expect(stdout.split('\0')).toEqual(some)
    }
  })

  real('also when it is larger than any pipe', async () => {
    using box = await confined()
    const many = Array.from({ length: 12 }, (_, at) => String(at).repeat(100_000).slice(0, 100_000))
    expect((await box.run('', { argv: ['/bin/sh', '-c', 'echo $#; printf %s "$@" | wc -c', 'sh', ...many] })).stdout).toBe('12\n1200000\n')
  })

  test('names that a shell could not set go through env', () => {
    const env = { GOOD: "x'y\nz", 'odd-name': 'v', '1': '$(id)' }
    const lines = commandLines({ mark: 'm', argv: ['/bin/a'], cwd: '/w', env, descriptor: '5' })
    expect(lines).toContain("export GOOD='x'\\''y\nz'\n")
    expect(lines).toEndWith("exec '/usr/bin/env' '1=$(id)' 'odd-name=v' '/bin/a'\n}\n")
  })

  test('nothing of a command that arrives only in part is run', () => {
    const said = "a'b\n".repeat(3)
    const whole = commandLines({ mark: 'm', argv: ['/bin/echo', '-n', said], cwd: '/', env: { GOOD: 'yes' }, descriptor: '5' })
    const [program = '', ...words] = receiver('5')
    const outputOf = (lines: string) => {
      const source = mkdtempSync(join(tmpdir(), 'braidclaw-part-'))
      try {
        writeFileSync(join(source, 'lines'), lines)
        const part = openSync(join(source, 'lines'), 'r')
        const stdio: ['ignore', 'pipe', 'ignore', 'ignore', 'ignore', number] = ['ignore', 'pipe', 'ignore', 'ignore', 'ignore', part]
        const { stdout } = Bun.spawnSync([program, ...words], { stdio, env: {} })
        closeSync(part)
        return stdout.toString()
      } finally {
        rmSync(source, { recursive: true })
      }
    }
    expect(outputOf(whole)).toBe(said)
    for (let size = 0; size < whole.length - 2; size += 3) expect(outputOf(whole.slice(0, size))).toBe('')
  })
})

/** Uses up the sandbox that waits since the trial at the start. */
async function emptied(): Promise<void> {
  await Bun.sleep(30)
  for (const pid of sandboxes()) process.kill(Number(pid), 'SIGKILL')
  while (sandboxes().length > 0) await Bun.sleep(5)
}

/** @returns the process numbers of the living children of this process: it starts nothing but sandboxes */
function sandboxes(): string[] {
  const isOurs = (pid: string) => statOf(pid).split(') ')[1]?.split(' ')[1] === String(process.pid)
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOurs(name) && !/\) [ZX] /.test(statOf(name)))
}

function statOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return ''
  }
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
