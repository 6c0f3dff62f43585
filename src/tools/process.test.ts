import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFolder, gone } from './fixture.ts'
import { cleanEnvironment, type SpawnResult, spawnPlain } from './process.ts'

type Ran = { readonly ended: SpawnResult; readonly out: string }

/** Runs a script; `until`: abort once this file exists in the folder. */
async function run(root: string, script: string, until?: string): Promise<Ran> {
  const controller = new AbortController()
  const decoder = new TextDecoder()
  let out = ''
  const running = spawnPlain({
    argv: ['/bin/bash', '--noprofile', '--norc', '-c', script],
    cwd: root,
    env: cleanEnvironment({ home: root }),
    signal: controller.signal,
    onOutput(chunk) {
      out += decoder.decode(chunk, { stream: true })
    },
  })
  while (until !== undefined && !existsSync(join(root, until))) await Bun.sleep(1)
  if (until !== undefined) controller.abort()
  return { ended: await running, out }
}

const pid = (root: string, file: string) => Number(readFileSync(join(root, file), 'utf8'))

describe('children are ended', () => {
  test('a child that hangs ends with TERM when the signal fires', async () => {
    using folder = createFolder()
    const { ended } = await run(folder.root, 'echo $$ > pid; exec sleep 1000', 'pid')
    expect(ended).toMatchObject({ ok: true, code: null, signal: 'SIGTERM' })
  })

  test('one that ignores TERM is killed, with a stopped grandchild and one that ignores TERM too', async () => {
    using folder = createFolder()
    const { ended } = await run(
      folder.root,
      `trap '' TERM; (trap '' TERM; echo $BASHPID > a; while :; do sleep 100; done) & (echo $BASHPID > b; kill -STOP $BASHPID) &
       while [ ! -s a ] || [ ! -s b ]; do :; done; echo $$ > c; while :; do sleep 100; done`,
      'c',
    )
    expect(ended).toMatchObject({ ok: true, code: null, signal: 'SIGKILL' })
    for (const file of ['a', 'b', 'c']) await gone(pid(folder.root, file))
  })

  test('what a command leaves in the background is ended when it ends, and its output so far is kept', async () => {
    using folder = createFolder()
    const { ended, out } = await run(folder.root, 'sleep 1000 & echo $! > a; echo hello')
    expect(ended).toMatchObject({ ok: true, code: 0, leftBehind: true })
    expect(out).toBe('hello\n')
    await gone(pid(folder.root, 'a'))
  })

  test('a process that escaped with setsid cannot keep the call waiting', async () => {
    using folder = createFolder()
    const { ended, out } = await run(
      folder.root,
      'setsid bash -c "echo \\$\\$ > esc; exec sleep 1000" & while [ ! -s esc ]; do :; done; echo hello',
    )
    expect(ended).toMatchObject({ ok: true, code: 0 })
    expect(out).toBe('hello\n')
    process.kill(pid(folder.root, 'esc'), 'SIGKILL')
  })

  test('nothing starts when the signal has fired before', async () => {
    using folder = createFolder()
    const signal = AbortSignal.abort()
    const ended = await spawnPlain({ argv: ['/usr/bin/touch', 'x'], cwd: folder.root, env: {}, signal, onOutput() {} })
    expect(ended).toMatchObject({ ok: false, message: 'cancelled before it started' })
    expect(existsSync(join(folder.root, 'x'))).toBe(false)
  })
})

describe('children are started', () => {
  test('with nothing of our environment, and no standard input', async () => {
    using folder = createFolder()
    process.env.BRAIDCLAW_TEST_KEY = 's3cret'
    const { out } = await run(folder.root, 'cat; read x; echo "read says $?"; exec env')
    delete process.env.BRAIDCLAW_TEST_KEY
    const names = out
      .split('\n')
      .slice(1, -1)
      .map((line) => line.split('=')[0])
    expect(out).toStartWith('read says 1\n')
    const own = names.filter((name) => name !== '_').sort()
    const git = ['GIT_CONFIG_PARAMETERS', 'GIT_TERMINAL_PROMPT']
    expect(own).toEqual([...git, 'HOME', 'LANG', 'NO_COLOR', 'PAGER', 'PATH', 'PWD', 'SHLVL', 'TERM'])
  })

  test.if(Bun.which('git') !== null)('git obeys no folder that only looks like a repository of its own', async () => {
    using folder = createFolder()
    folder.put('trap/HEAD', 'ref: refs/heads/main')
    for (const empty of ['objects', 'refs']) folder.put(`trap/${empty}/x`, '')
    const settings = `repositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = "touch ${folder.root}/ran; false"`
    folder.put('trap/config', `[core]\n${settings}\n`)
    const { out } = await run(folder.root, 'git -C trap status 2>&1; ls; git init -q real && git -C real status')
    expect(out).toContain('safe.bareRepository')
    expect(out).not.toContain('ran\n')
    expect(out).toContain('No commits yet')
  })

  test('exit code and signal are told apart', async () => {
    using folder = createFolder()
    expect((await run(folder.root, 'exit 137')).ended).toMatchObject({ code: 137, signal: undefined })
    expect((await run(folder.root, 'kill -SEGV $$')).ended).toMatchObject({ code: null, signal: 'SIGSEGV' })
  })

  test('a missing program, a missing folder and too long arguments are values', async () => {
    using folder = createFolder()
    const start = (argv: string[], cwd = folder.root) =>
      spawnPlain({ argv, cwd, env: {}, signal: new AbortController().signal, onOutput() {} })
    expect(await start(['/nope/x'])).toMatchObject({
      ok: false,
      message: expect.stringContaining('the program or its folder does not exist'),
    })
    expect(await start(['/bin/true'], '/nope')).toMatchObject({ ok: false })
    expect(await start([folder.root])).toMatchObject({ ok: false })
    expect(await start(['/bin/echo', 'x'.repeat(3_000_000)])).toMatchObject({ ok: false, message: expect.stringContaining('too long') })
  })
})
