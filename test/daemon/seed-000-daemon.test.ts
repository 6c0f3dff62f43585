/** The daemon as something that stays: one a folder, killed and started again, stopped in the middle, fed nonsense, and honest in its answers. */

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { background, daemon, folderOf, historyOf, launch, person, pidIn, runs, stopping } from '../support/daemon.ts'
import { startApi } from '../support/messages-api.ts'
import { shell } from '../support/shell.ts'
import { call, home, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const anthropic = (base: string) => ({
  env: { BRAIDCLAW_DEFAULT_PROVIDER: 'far', ANTHROPIC_API_KEY: 'sk-ant-not-a-secret' },
  toml: `[providers.models.far]\nkind = "anthropic"\nmodel = "m"\nbase_url = "${base}/v1"\nstream = false\nmax_retries = 0\n`,
})

test('a second daemon on the folder is refused with the number of the first; on another folder it is not', async () => {
  using at = nest()
  await using first = stopping(await daemon(at))
  const second = await launch(at).result
  expect([second.code, second.stderr]).toEqual([1, expect.stringContaining(`another daemon serves "${first.dir}" (pid ${first.pid})`)])
  await using me = await person(first.dir)
  expect(await me.ask('Still there?')).not.toBe('')
  const elsewhere = await daemon(at, ['--fifo-dir', join(at.dir, 'other')])
  expect((await elsewhere.stop()).code).toBe(0)
})

test('what is no folder or FIFO of ours alone is refused and stays as it was', async () => {
  using at = nest()
  const dir = folderOf(at)
  mkdirSync(dir, { mode: 0o755 })
  expect((await launch(at).result).stderr).toContain('is not a private folder')
  rmSync(dir, { recursive: true })
  mkdirSync(dir, { mode: 0o700 })
  writeFileSync(join(dir, 'interact_in'), 'me\thello\n')
  const { code, stderr } = await launch(at).result
  expect([code, stderr]).toEqual([1, expect.stringContaining('interact_in is not a private FIFO')])
  expect(readFileSync(join(dir, 'interact_in'), 'utf8')).toBe('me\thello\n')
})

test('killed with -9: its bridges end, the next one takes the folder over, and nothing that was answered is lost', async () => {
  using at = nest()
  const replies = scripted(at, [{ text: 'one' }, { text: 'two' }])
  const bridge = ['--bridge', `interact=(trap "" HUP; sleep 600) & echo $! > ${at.dir}/child; echo $$ > ${at.dir}/leader; wait`]
  const first = await daemon(at, bridge, replies)
  await using me = await person(first.dir)
  expect(await me.ask('First')).toBe('one')
  const pids = () => ['leader', 'child'].map((name) => pidIn(join(at.dir, name)))
  await until(() => !pids().includes(0))
  expect(pids().map(runs)).toEqual([true, true])
  await first.kill()
  await until(() => !pids().some(runs))
  expect(pids().map(runs)).toEqual([false, false])

  await me.say('Second')
  await using again = stopping(await daemon(at, [], replies))
  expect(await me.hear()).toEqual({ channel: 'me', text: 'one' })
  expect(historyOf(at)).toEqual(['First', 'one', 'Second', 'one'])
  expect((await at.run(['receipt', 'verify'])).code).toBe(0)
  expect(again.dir).toBe(first.dir)
})

test('a bridge that does not listen to SIGTERM and outlived its daemon is ended by the next one', async () => {
  using at = nest()
  const stubborn = `trap "" TERM; echo $$ > ${at.dir}/pid; while :; do sleep 0.05; done`
  const first = await daemon(at, ['--bridge', `interact=${stubborn}`])
  await until(() => pidIn(join(at.dir, 'pid')) > 0)
  const pid = pidIn(join(at.dir, 'pid'))
  await first.kill()
  await Bun.sleep(100)
  expect(runs(pid)).toBe(true)
  const again = await daemon(at)
  await until(() => !runs(pid))
  expect(runs(pid)).toBe(false)
  expect((await again.stop()).stderr).toContain('recovered after a crash bridgesEnded=1')
})

test('killed in the middle of a turn: the next start says so, and the history holds whole pairs only', async () => {
  using at = nest()
  const first = await daemon(at, [], scripted(at, [{ text: 'never', delay_ms: 20_000 }]))
  await using me = await person(first.dir)
  await me.say('Half')
  await until(() => existsSync(join(at.home, '.braidclaw/agents/default/agent.jsonl')))
  await first.kill()
  await using again = stopping(await daemon(at, [], scripted(at, [{ text: 'whole' }])))
  expect(await me.ask('Again')).toBe('whole')
  expect(historyOf(at)).toEqual(['Again', 'whole'])
  expect(again.pid).not.toBe(first.pid)
})

test('SIGTERM: the answer at hand is still given, who waits is told, and the exit code is 0', async () => {
  using at = nest()
  const agent = await daemon(at, [], scripted(at, [{ text: 'in time', delay_ms: 600 }]))
  await using me = await person(agent.dir)
  await me.say('First', 'a')
  await me.say('Second', 'b')
  await Bun.sleep(200)
  const stopped = agent.stop()
  const heard = [await me.hear(), await me.hear()].sort((a, b) => a.channel.localeCompare(b.channel))
  expect(heard).toEqual([
    { channel: 'a', text: 'in time' },
    { channel: 'b', text: '[not answered: the assistant is being stopped; send it again later]' },
  ])
  const { code, stderr } = await stopped
  expect(code).toBe(0)
  expect(stderr).toContain('message not answered from=fifo channel=b beginning=Second')
  expect(historyOf(at)).toEqual(['First', 'in time'])
})

test('SIGTERM in a turn that takes too long: it is cancelled, says so, and is over within five seconds', async () => {
  using at = nest()
  const agent = await daemon(
    at,
    ['--bridge', 'interact=trap "" TERM; while :; do sleep 0.1; done'],
    scripted(at, [{ text: 'never', delay_ms: 60_000 }]),
  )
  await using me = await person(agent.dir)
  await me.say('Long')
  await Bun.sleep(200)
  const stopped = agent.stop()
  expect((await me.hear()).text).toStartWith('[cancelled: ')
  expect((await stopped).code).toBe(0)
})

test('a bridge that ends is started again and reported; what it says is in the log without its secrets; our own variables are not its business', async () => {
  using at = nest()
  writeFileSync(join(at.dir, 'my.env'), 'MY_TOKEN=tok-0123456789abcdef\n# a comment\nBRAIDCLAW_MOCK_LATENCY=0\n')
  const bridge = ['--bridge', 'interact=echo "it is $MY_TOKEN, $BRAIDCLAW_HOME, $PLANCKCLAW_FIFOS" >&2; echo >> ran; exit 3']
  const env = { BRAIDCLAW_HOME: join(at.home, 'elsewhere') }
  const agent = await daemon(at, [...bridge, '--env-file', join(at.dir, 'my.env')], { env, cwd: at.dir })
  await agent.says('bridge ended')
  await until(() => readFileSync(join(at.dir, 'ran'), 'utf8').length > 1)
  const { code, stderr } = await agent.stop()
  expect(code).toBe(0)
  expect(stderr.match(/bridge started bridge=interact pid=\d+/g)?.length).toBeGreaterThanOrEqual(2)
  expect(stderr).toContain('bridge ended bridge=interact how="exit code 3" ends=1 againInMs=1000')
  expect(stderr).toMatch(new RegExp(`bridge says bridge=interact line="it is \\[.*MY_TOKEN.*\\], , ${agent.dir}"`))
  expect(stderr).not.toContain('tok-0123456789abcdef')
})

test('a line that is no message is said in the log, one that is too long is answered, and the others come in order', async () => {
  using at = nest()
  await using agent = stopping(
    await daemon(
      at,
      [],
      scripted(
        at,
        ['one', 'two', 'three', 'four'].map((text) => ({ text })),
      ),
    ),
  )
  await using me = await person(agent.dir)
  await me.write('no tab\n\n\tno channel\nc\t \n')
  await me.write(new Uint8Array([...Buffer.from('bad\t'), 0xff, 0xc3, 0x28, 0x0a]))
  expect(await me.hear()).toEqual({ channel: 'bad', text: 'one' })
  await me.write('half\tbeginning and ')
  await Bun.sleep(50)
  await me.write('end\r\n')
  expect(await me.hear()).toEqual({ channel: 'half', text: 'two' })
  await me.write(Buffer.from(`long\t${'x'.repeat(200_000)}\nmany\t1\n`))
  expect([await me.hear(), await me.hear()]).toEqual([
    { channel: 'long', text: 'three' },
    { channel: 'many', text: 'four' },
  ])
  await me.write(Buffer.from(`huge\t${'x'.repeat(1_200_000)}\n`))
  expect(await me.hear()).toEqual({ channel: 'huge', text: expect.stringContaining('[not answered: the message is longer than') })
  const { stderr } = await agent.stop()
  for (const problem of ['no tab', 'no channel', 'no text']) expect(stderr).toContain(`has ${problem}`)
  expect(
    historyOf(at)
      .filter((_, n) => n % 2 === 0)
      .map((text) => text.length),
  ).toEqual([3, 17, 200_000, 1])
  expect(historyOf(at)[0]).toBe('\ufffd\ufffd(')
})

test('a writer that is killed in mid-message is told so, and the next one is heard for itself', async () => {
  using at = nest()
  await using agent = stopping(await daemon(at, [], scripted(at, [{ text: 'one' }, { text: 'two' }])))
  await using heard = background(at, `exec cat ${agent.dir}/interact_out > ${at.dir}/heard`)
  const told = () => (existsSync(join(at.dir, 'heard')) ? readFileSync(join(at.dir, 'heard'), 'utf8') : '')
  const isTold = () => told().includes('bob\t[not answered')
  for (const [half, isHeard] of [
    ['bob\\tremove everything un', () => until(isTold)],
    ['b', () => agent.says(/(cut off: it has no newline[\s\S]*cut off: it has no newline)/)],
  ] as const) {
    const writer = Bun.spawn(['sh', '-c', `exec 5> ${agent.dir}/interact_in; printf '${half}' >&5; echo wrote; exec sleep 600`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    for await (const _ of writer.stdout) break
    writer.kill('SIGKILL')
    await writer.exited
    await isHeard()
    const before = told().split('alice\t').length
    expect((await shell(at, `printf 'alice\\thello\\n' > ${agent.dir}/interact_in`)).code).toBe(0)
    await until(() => told().split('alice\t').length > before)
  }
  expect(told()).toBe('bob\t[not answered: the message is cut off: it has no newline]\nalice\tone\nalice\ttwo\n')
  expect(historyOf(at)).toEqual(['hello', 'one', 'hello', 'two'])
  expect(heard.pid).toBeGreaterThan(0)
  const { stderr } = await agent.stop()
  expect(stderr).toContain('message ignored from=fifo why="cut off: it has no newline"')
})

test('when somebody takes the FIFOs away it ends with 1 and says so, instead of staying deaf', async () => {
  using at = nest()
  const agent = await daemon(at)
  renameSync(agent.dir, `${agent.dir}-gone`)
  const { code, stderr } = await agent.result
  expect([code, stderr]).toEqual([1, expect.stringContaining('were removed by somebody; start again')])
})

test('a denial, a question that nobody can answer, and a stop are each said in words', async () => {
  using at = home()
  const replies = [
    call('shell', { command: 'sudo rm -rf /' }),
    { text: 'I did it.' },
    call('file_write', { path: 'a.txt', content: 'x' }),
    { text: 'It is written.' },
    call('file_write', { path: 'a.txt', content: 'x' }),
    { text: 'Now it is.' },
    call('file_list', { path: '.' }),
    { text: 'I may not look.' },
  ]
  await using agent = stopping(await daemon(at, [], scripted(at, replies)))
  await using me = await person(agent.dir)
  expect(await me.ask('Remove everything')).toMatch(/^I did it\.\n\n\[denied: .+\]$/s)
  const asked = await me.ask('Write it')
  expect(asked).toMatch(/^It is written\.\n\n\[approval needed: .*On the machine: braidclaw approvals allow \S+; then ask again\]$/s)
  expect(historyOf(at).join('\n')).not.toContain('braidclaw approvals allow')
  expect(historyOf(at)[3]).toMatch(/\[approval needed: .*\]$/s)

  const id = /approvals allow (\S+);/.exec(asked)?.[1] ?? ''
  expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
  expect(existsSync(join(at.workspace, 'a.txt'))).toBe(false)
  expect(await me.ask('Write it, please')).toBe('Now it is.')
  expect(readFileSync(join(at.workspace, 'a.txt'), 'utf8')).toBe('x')

  await at.run(['estop', '--reason', 'enough'])
  expect(await me.ask('And now?')).toMatch(/^I may not look\.\n\n\[stopped: .*enough.*\]$/s)
})

test('the configured provider thinks inside, and a summary being written holds nobody up', async () => {
  using at = nest()
  const held = Promise.withResolvers<void>()
  using api = startApi(async ({ system, messages }) => {
    const isSummary = JSON.stringify(system).includes('memory compaction assistant')
    if (isSummary) await held.promise
    return isSummary ? 'a summary' : `re: ${JSON.stringify(messages.at(-1)?.content)}`
  })
  const { env, toml } = anthropic(api.base)
  at.config(toml)
  await using agent = stopping(await daemon(at, [], { env: { ...env, HISTORY_MAX: '4', HISTORY_KEEP: '2' } }))
  await using me = await person(agent.dir)
  for (const word of ['one', 'two', 'three', 'four']) expect(await me.ask(word)).toContain(word)
  const summary = join(at.home, '.braidclaw/agents/default/summary.md')
  expect(readFileSync(summary, 'utf8')).toBe('')
  held.resolve()
  await until(() => readFileSync(summary, 'utf8') !== '')
  expect(readFileSync(summary, 'utf8')).toBe('a summary\n')
  expect(historyOf(at).slice(-2)[0]).toBe('four')
})

test('flags that contradict each other, and an environment file that is none, are refused before anything is made', async () => {
  using at = nest()
  const refused = async (args: readonly string[]) => {
    const { code, stderr } = await launch(at, args).result
    expect(existsSync(folderOf(at))).toBe(false)
    return [code, stderr]
  }
  expect(await refused(['--bridge', 'mouth=x'])).toEqual([2, expect.stringContaining('write interact=COMMAND')])
  expect(await refused(['--bridge', 'brain=a', '--bridge', 'brain=b'])).toEqual([2, expect.stringContaining('twice')])
  expect(await refused(['--bridge', 'brain=a', '--brain', 'inside'])).toEqual([2, expect.stringContaining('contradict')])
  expect(await refused(['--env-file', 'none.env'])).toEqual([1, expect.stringContaining('the file does not exist')])
  at.file('odd.env', 'A=1\nrm -rf /\n')
  expect(await refused(['--env-file', 'odd.env'])).toEqual([1, expect.stringContaining('odd.env:2: is not an assignment')])
})
