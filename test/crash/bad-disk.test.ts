/** Disks that refuse, databases and receipts that are damaged: a clear word, the right code, nothing lost, nothing hung. */

import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { appendFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, type Nest, nest, type Result } from '../support/cli.ts'
import { given } from '../support/needs.ts'
import { call, home, refused, scripted, turn } from '../support/turns.ts'

const ours = (at: Nest, name: string) => join(at.home, '.braidclaw', name)

describe('the disk', () => {
  const mountable = given(process.getuid?.() === 0 && Bun.spawnSync(['unshare', '-m', 'true']).success, 'root')

  /** Each script runs in a mount namespace of its own: $1 is the home, $2 the executable. What it mounts goes with it. */
  const inNamespace = (at: Nest, script: string, env: { [name: string]: string } = {}): Result => {
    const argv = ['unshare', '-m', 'sh', '-c', `mount -t tmpfs -o size=2m none "$1" || exit 99\n${script}`, 'sh', at.home, executable]
    const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { cwd: at.dir, env: { ...at.env, ...env }, stdin: 'ignore', timeout: 20_000 })
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() }
  }
  const prepare = 'mkdir "$1/w"; "$2" init --workspace "$1/w" >/dev/null 2>&1; cd "$1/w"'

  test.if(mountable)('read-only: each command says so', async () => {
    using at = nest()
    for (const command of ['agent -m hello', 'estop', 'memory list', 'tool run time --json {}'])
      refused(inNamespace(at, `${prepare}; mount -o remount,ro "$1"; exec "$2" ${command}`), 1, 'read-only')
    const shown = inNamespace(at, `${prepare}; mount -o remount,ro "$1"; "$2" config show >/dev/null && "$2" config validate`)
    expect(shown.code).toBe(0)
  })

  test.if(mountable)(
    'full: nothing is begun that cannot be recorded, what was there stays, and it goes on when there is room',
    async () => {
      using at = nest()
      const fill = 'cat /dev/zero > "$1/fill" 2>/dev/null'
      const { code, stdout, stderr } = inNamespace(
        at,
        `${prepare}
      "$2" agent -m "What files are in this project?" >/dev/null 2>&1 || exit 90
      ${fill}; "$2" agent -m "What files are in this project?"; echo "code $?"
      rm "$1/fill"; "$2" agent -m "What files are in this project?" >/dev/null 2>&1; echo "code $?"
      "$2" receipt verify --deep; "$2" memory list --json`,
      )
      expect(code).toBe(0)
      expect(stderr).toContain('free s')
      const [full, later, verified, list = ''] = stdout.trim().split('\n').slice(-4)
      expect([full, later]).toEqual(['code 1', 'code 0'])
      expect(verified).toStartWith('valid: 2 receipts')
      expect(JSON.parse(list)).toHaveLength(2)
    },
  )

  test.if(mountable)('full in the middle of a turn: the tool does not run, because no receipt of it could be kept', async () => {
    using at = nest()
    const { BRAIDCLAW_MOCK_FIXTURE } = scripted(at, [
      { ...call('file_write', { path: 'made.txt', content: 'x' }), delay_ms: 2_500 },
      { text: 'done' },
    ]).env
    const { stdout, stderr } = inNamespace(
      at,
      `${prepare}
      "$2" agent -m go --approve-all-medium &
      until grep -qs run.start "$1/.braidclaw/memory.sqlite-wal"; do sleep 0.05; done
      cat /dev/zero > "$1/fill" 2>/dev/null
      wait $!; echo "code $?"; ls; rm "$1/fill"; "$2" receipt verify`,
      { BRAIDCLAW_MOCK_FIXTURE },
    )
    expect(stdout).toMatch(/^code 9\nvalid: 0 receipts/)
    expect(stderr).toContain('the disk is full')
  })

  test.if(mountable)('full: the emergency stop still stops', async () => {
    using at = nest()
    const { stdout } = inNamespace(
      at,
      `${prepare}; cat /dev/zero > "$1/fill" 2>/dev/null; "$2" estop; rm "$1/fill"; "$2" tool run time --json {}; echo $?`,
    )
    expect(stdout).toContain('stopped: no tool runs')
    expect(stdout).toEndWith('10\n')
  })
})

describe('the database', () => {
  async function used(): Promise<Nest> {
    const at = home()
    await turn(at, [call('time', {}), { text: 'first' }])
    return at
  }

  test('a damaged page ends with integrity, and the file is left for a rescue', async () => {
    using at = await used()
    const file = ours(at, 'memory.sqlite')
    const bytes = readFileSync(file)
    bytes.fill(0xa5, 4096)
    writeFileSync(file, bytes)
    const result = await turn(at, [{ text: 'x' }], ['--continue'])
    refused(result, 9, 'memory.sqlite', 'damaged')
    expect(statSync(file).size).toBe(bytes.length)
    refused(await at.run(['memory', 'list']), 9, 'damaged')
  })

  test('cut to half', async () => {
    using at = await used()
    truncateSync(ours(at, 'memory.sqlite'), 10_000)
    refused(await turn(at, [{ text: 'x' }]), 9, 'memory.sqlite')
  })

  test('written by a newer version', async () => {
    using at = await used()
    const db = new Database(ours(at, 'memory.sqlite'))
    db.run('PRAGMA user_version = 999')
    db.close()
    refused(await turn(at, [{ text: 'x' }]), 1, 'newer', 'update BraidClaw')
  })

  test('held by another process: said after the five seconds of waiting', async () => {
    using at = await used()
    const db = new Database(ours(at, 'memory.sqlite'))
    db.run('BEGIN EXCLUSIVE')
    const result = await turn(at, [{ text: 'x' }], [], { timeoutMs: 9000 })
    db.run('ROLLBACK')
    db.close()
    refused(result, 1, 'in use by another process')
    expect((await turn(at, [{ text: 'fine' }])).code).toBe(0)
  })
})

describe('the receipts', () => {
  async function used(): Promise<Nest> {
    const at = home()
    await turn(at, [call('time', {}), { text: 'first' }])
    return at
  }

  test('a torn last line is cut off, said, and the chain goes on', async () => {
    using at = await used()
    appendFileSync(ours(at, 'tool_receipts.log'), '{"args_hash":"abc","conv')
    const { code, stderr } = await turn(at, [call('time', {}), { text: 'second' }])
    expect(code).toBe(0)
    expect(stderr).toContain('recovered after a crash')
    expect((await at.run(['receipt', 'verify', '--deep'])).stdout).toStartWith('valid: 2 receipts')
  })

  test('an acknowledged last line that is torn is no crash but an alteration', async () => {
    using at = await used()
    const file = ours(at, 'tool_receipts.log')
    truncateSync(file, statSync(file).size - 20)
    refused(await turn(at, [call('time', {}), { text: 'x' }]), 9, 'receipt')
  })

  test.each([
    ['tool_receipts.log', 'missing or empty'],
    ['receipt.key', 'key'],
  ])('%s gone', async (name, says) => {
    using at = await used()
    Bun.spawnSync(['rm', ours(at, name)])
    refused(await turn(at, [call('time', {}), { text: 'x' }]), 9, says)
  })
})
