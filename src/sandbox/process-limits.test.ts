import { describe, expect, test } from 'bun:test'
import { confined, hasBubblewrap, limits } from './fixture.ts'
import { watchUse } from './process-limits.ts'

const real = test.if(hasBubblewrap())
const MIB = 2 ** 20

/** Each process stays far below the limit of one. */
const holders = (count: number, megabytes: number) =>
  `for i in $(seq ${count}); do perl -e 'my $x = "x" x (${megabytes} * 1048576); sleep 20' & done; wait`

describe('what all processes of a command use together', () => {
  real(
    'ends it when their memory is too much, and the reason says so',
    async () => {
      using box = await confined({ limits: { ...limits, totalMemoryBytes: 150 * MIB } })
      const { ended } = await box.run(holders(5, 50))
      expect(ended).toMatchObject({
        ok: true,
        signal: 'SIGKILL',
        stopped: expect.stringContaining(`held more than ${150 * MIB} bytes of memory`),
      })
      expect(await box.run('echo next')).toMatchObject({ code: 0, stdout: 'next\n' })
    },
    120_000,
  )

  real(
    'counts the files in /tmp, which are held in memory',
    async () => {
      using box = await confined({ limits: { ...limits, totalMemoryBytes: 60 * MIB } })
      const { ended } = await box.run('head -c 40M /dev/zero > /tmp/a; head -c 40M /dev/zero > /tmp/b; sleep 10')
      expect(ended).toMatchObject({ stopped: expect.stringContaining('files in /tmp included') })
    },
    120_000,
  )

  real(
    'counts memory that processes share after a fork only once',
    async () => {
      using box = await confined({ limits: { ...limits, totalMemoryBytes: 150 * MIB } })
      const { ended } = await box.run(
        `perl -e 'my $x = "x" x (60 * 1048576); for (1 .. 4) { if (!fork) { sleep 1; exit } } 1 while wait != -1'`,
      )
      expect(ended).toMatchObject({ ok: true, code: 0 })
    },
    120_000,
  )

  real(
    'ends it when it writes too much, also through processes that have ended',
    async () => {
      using box = await confined({ limits: { ...limits, diskBytes: 30 * MIB } })
      const { ended } = await box.run('for i in 1 2 3 4 5 6 7 8; do head -c 8M /dev/zero > f$i; sync f$i; done; sleep 10')
      expect(ended).toMatchObject({ stopped: expect.stringContaining(`wrote more than ${30 * MIB} bytes to disk`) })
    },
    120_000,
  )

  real('lets a command go on that stays below', async () => {
    using box = await confined({ limits: { ...limits, totalMemoryBytes: 400 * MIB, diskBytes: 30 * MIB } })
    expect((await box.run('head -c 8M /dev/zero > f; sleep 0.5; echo done')).ended).toMatchObject({ ok: true, code: 0 })
  })

  real('is what the kernel ends first when the machine has no memory left', async () => {
    using box = await confined()
    expect((await box.run('cat /proc/self/oom_score_adj; sh -c "cat /proc/self/oom_score_adj"')).stdout).toBe('800\n800\n')
  })
})

test('a sandbox that is not set up yet, where the machine itself would be measured, is not ended', async () => {
  const killed: string[] = []
  const watch = watchUse({
    pid: process.pid,
    limits: { ...limits, totalMemoryBytes: 1, processes: 1 },
    kill: () => killed.push('x'),
    everyMs: 1,
  })
  await Bun.sleep(50)
  expect([watch.end(), killed]).toEqual([undefined, []])
})
