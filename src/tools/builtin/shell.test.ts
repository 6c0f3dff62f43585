import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { act, context, createFolder, gone, script } from '../fixture.ts'
import { cleanEnvironment, spawnPlain } from '../process.ts'
import { createExecutor } from '../run-tool.ts'
import { toolFrom } from '../tool-kind.ts'
import { type ShellPlan, shell as shellKind } from './shell.ts'

const shellTimes = { usualS: 15, longestS: 60 }

const shell = (root: string, plan: ShellPlan | undefined, maxOutputBytes = 10_000) =>
  toolFrom(shellKind, { spawn: spawnPlain, planOf: () => plan, env: cleanEnvironment({ home: root }), maxOutputBytes }, shellTimes)

const run = async (text: string, maxOutputBytes?: number) => {
  using folder = createFolder()
  return await shell(folder.root, script(text, folder.root), maxOutputBytes).invoke({ command: 'ignored' }, context())
}

describe('what is refused', () => {
  test('a command that the gate did not analyse is not run, whatever the input says', async () => {
    using folder = createFolder()
    const result = await shell(folder.root, undefined).invoke({ command: `touch ${folder.root}/x` }, context())
    expect(result).toMatchObject({ success: false, deniedBy: 'shell.no_plan' })
    expect(existsSync(join(folder.root, 'x'))).toBe(false)
  })

  test('the plan runs and not the text of the call', async () => {
    using folder = createFolder()
    const asked: string[] = []
    const tool = toolFrom(shellKind, {
      spawn: spawnPlain,
      planOf: (hash) => {
        asked.push(hash)
        return { plan: { kind: 'argv', executable: '/bin/echo', argv: ['echo', '$HOME', '*', '; id'] }, cwd: folder.root }
      },
      env: cleanEnvironment({ home: folder.root }),
      maxOutputBytes: 1_000,
    })
    expect(await tool.invoke({ command: 'id' }, context({ plan: 'hash-1' }))).toMatchObject({ success: true, output: '$HOME * ; id' })
    expect(asked).toEqual(['hash-1'])
  })
})

describe('floods and failures', () => {
  test('fifty million bytes are counted exactly and shown by head and tail', async () => {
    const { success, output, metadata } = await run('yes | head -c 50M')
    expect({ success, bytes: metadata?.bytes }).toEqual({ success: true, bytes: 52_428_800 })
    const [notice = '', omitted = ''] = /\[… ([\d,]+) of 52,428,800 bytes omitted …\]\n/.exec(output) ?? []
    // Only the last newline is removed from the output.
    expect(Number(omitted.replaceAll(',', ''))).toBe(52_428_800 - (Buffer.byteLength(output) - Buffer.byteLength(notice) + 1))
    expect(output.length).toBeLessThanOrEqual(10_000)
  })

  test('a flood without end is stopped long before the time is over', async () => {
    const result = await run('yes')
    expect(result).toMatchObject({ success: false })
    expect(result.error).toStartWith('stopped after printing more than 67108864 bytes; ended by SIG')
  })

  test('what the sandbox did not leave of its work makes a command fail, with the reason in the words of the sandbox', async () => {
    using folder = createFolder()
    const undone = ['the set-group-ID bit of "x" was taken away']
    const tool = toolFrom(shellKind, {
      spawn: async (plan) => ({ ...(await spawnPlain(plan)), undone }),
      planOf: () => script('echo out', folder.root),
      env: cleanEnvironment({ home: folder.root }),
      maxOutputBytes: 1_000,
    })
    expect(await tool.invoke({ command: 'x' }, context())).toMatchObject({
      success: false,
      output: 'out',
      error: 'exit code 0; the set-group-ID bit of "x" was taken away',
    })
  })

  test('an exit code and a signal are reported, with what was printed', async () => {
    expect(await run('echo out; echo err >&2; exit 3')).toMatchObject({ success: false, error: 'exit code 3', metadata: { exitCode: 3 } })
    expect(await run('echo out; kill -9 $$')).toMatchObject({ success: false, output: 'out', error: 'ended by SIGKILL' })
    expect(await run('nonsense-command')).toMatchObject({ success: false, error: 'exit code 127' })
  })

  test('binary output becomes text without tearing the good characters of either stream', async () => {
    const result = await run(`printf '\\xff\\xc3'; printf '\\xe2' >&2; sleep 0.05; printf '\\xa9'; printf '\\x82\\xac' >&2; printf '\\0'`)
    expect([...result.output].sort()).toEqual([...'\ufffdé€\0'].sort())
  })

  test('a missing bash is a value', async () => {
    using folder = createFolder()
    const deps = { spawn: spawnPlain, env: {}, maxOutputBytes: 1_000, bash: '/nope/bash' }
    const tool = toolFrom(shellKind, { ...deps, planOf: () => script('true', folder.root) })
    expect(await tool.invoke({ command: 'true' }, context())).toMatchObject({
      success: false,
      error: expect.stringContaining('/nope/bash'),
    })
  })
})

describe('a command that does not end', () => {
  test('times out with its output, and leaves no child', async () => {
    using folder = createFolder()
    const tool = shell(
      folder.root,
      script(`trap '' TERM; sleep 1000 & echo $! > a; echo $$ > b; echo started; wait; sleep 1000`, folder.root),
    )
    const execute = createExecutor({
      tools: [tool],
      log() {},
      room: () => ({ bytes: 10_000, tokens: 10_000, wholeBytes: 1_000_000 }),
      redact: (text) => text,
      timeouts: { shell: { ms: 200, advice: 'raise it' } },
    })
    const outcome = await execute(act('shell', { command: 'x' }), new AbortController().signal)
    expect(outcome).toMatchObject({ status: 'failed', output: 'started', error: 'timed out after 0.2 s (raise it); ended by SIGKILL' })
    for (const file of ['a', 'b']) await gone(Number(readFileSync(join(folder.root, file), 'utf8')))
  })

  test('has the time that its call asks for, whatever is usual: longer and shorter', async () => {
    using folder = createFolder()
    const execute = (text: string, usualMs: number) =>
      createExecutor({
        tools: [shell(folder.root, script(text, folder.root))],
        log() {},
        room: () => ({ bytes: 10_000, tokens: 10_000, wholeBytes: 1_000_000 }),
        redact: (text) => text,
        timeouts: { shell: { ms: usualMs, advice: 'raise it' } },
      })(act('shell', { command: 'x', timeout: 1 }), new AbortController().signal)
    expect(await execute('sleep 0.3; echo done', 50)).toMatchObject({ status: 'allowed', output: 'done' })
    expect(await execute('sleep 1000', 60_000)).toMatchObject({
      status: 'failed',
      error: 'timed out after 1 s (raise it); ended by SIGTERM',
    })
  })

  test('one that answers TERM with success has still failed', async () => {
    using folder = createFolder()
    const controller = new AbortController()
    const tool = shell(folder.root, script(`trap 'exit 0' TERM; touch ready; while :; do sleep 0.01; done`, folder.root))
    const running = tool.invoke({ command: 'x' }, context({ signal: controller.signal }))
    while (!existsSync(join(folder.root, 'ready'))) await Bun.sleep(1)
    controller.abort()
    expect(await running).toMatchObject({ success: false, error: 'exit code 0' })
  })
})

describe('what works', () => {
  test('output of both streams, no output, and a word about what was left in the background', async () => {
    expect(await run('echo out; sleep 0.05; echo err >&2')).toMatchObject({ success: true, output: 'out\nerr' })
    expect(await run('true')).toMatchObject({ success: true, output: '(no output)' })
    expect((await run('sleep 1000 &')).output).toBe('[processes it left in the background were ended]')
  })

  test('it starts in the folder of the plan', async () => {
    using folder = createFolder()
    const result = await shell(folder.root, script('pwd', folder.root)).invoke({ command: 'x' }, context())
    expect(result.output).toBe(folder.root)
  })

  test('the gate sees the command', () => {
    const { touches } = shell('/', undefined)
    expect(touches({ command: 'rm -rf /' })).toEqual([{ kind: 'command', command: 'rm -rf /' }])
    expect(touches({ command: 'x', network: ['a.org', 1], direct: true })).toEqual([
      { kind: 'command', command: 'x', network: ['a.org'], direct: true },
    ])
    expect(touches({ command: 'x', network: 'a.org', direct: 'yes' })).toEqual([{ kind: 'command', command: 'x' }])
  })

  test('the sandbox is told how the plan wants it to run, and nothing that the plan does not say', async () => {
    const told: unknown[] = []
    const toldBy = async (how: Partial<ShellPlan>) => {
      using folder = createFolder()
      const plan = { ...script('true', folder.root), ...how }
      const spawn: typeof spawnPlain = ({ readOnly, view, network, ...asked }) => {
        told.push({ readOnly, view, network })
        return spawnPlain(asked)
      }
      const deps = { spawn, planOf: () => plan, env: cleanEnvironment({ home: folder.root }), maxOutputBytes: 1_000 }
      await toolFrom(shellKind, deps, shellTimes).invoke({ command: 'x', direct: true, network: ['evil.org'] }, context())
    }
    await toldBy({})
    await toldBy({ readOnly: true })
    await toldBy({ view: 'private', network: ['a.org'] })
    expect(told).toEqual([{}, { readOnly: true }, { view: 'private', network: ['a.org'] }])
  })

  test('the model is told both limits, and the schema lets no call ask for more', () => {
    const { description, parameters } = shell('/', undefined)
    expect(description).toBe(
      'Run a bash command in the workspace. No stdin; 15 s, or timeout up to 60 s. network: hosts it needs. direct: on the real files (open databases); asks. background: for servers, watchers.',
    )
    expect(parameters.properties).toMatchObject({ timeout: { type: 'integer', minimum: 1, maximum: 60 } })
  })
})
