import { describe, expect, test } from 'bun:test'
import { confined, hasBubblewrap } from '../fixture.ts'

const real = test.if(hasBubblewrap())

describe('the output of a command', () => {
  real('can be opened again by its name, by scripts and programs', async () => {
    using box = await confined()
    expect(await box.run('echo one > /dev/stdout; echo two | tee /dev/stderr > /dev/fd/1; echo three > /proc/self/fd/2')).toMatchObject({
      code: 0,
      stdout: 'one\ntwo\n',
      stderr: 'two\nthree\n',
    })
  })

  real('arrives whole when there is much of it, and ends with the command', async () => {
    using box = await confined()
    const { code, stdout } = await box.run('seq 300000 | tee /dev/stderr >/dev/stdout')
    expect([code, stdout.length, stdout.endsWith('\n300000\n')]).toEqual([0, 1_988_895, true])
  })
})

real('the command line of the sandbox tells nothing of our own files', async () => {
  using box = await confined()
  const { stdout } = await box.run('tr "\\0" " " < /proc/1/cmdline; cat /proc/1/environ')
  expect(stdout).toContain('bwrap ')
  for (const secret of [box.root, 'state', 'bind', 'workspace']) expect(stdout).not.toContain(secret)
})

real('a command has its output and no other file of ours open', async () => {
  using box = await confined()
  const { stdout } = await box.run('ls /proc/$$/fd')
  expect(stdout.trim().split('\n')).toEqual(['0', '1', '2'])
})
