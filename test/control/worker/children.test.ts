/** Real children of a worker: what they may do, and that none of them outlives its run. */

import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ConfinementWay } from '../../../src/control/worker/child/child-confinement.ts'
import { markOf, openChildRecords, processesOfRun } from '../../../src/control/worker/child/child-processes.ts'
import { sha256 } from '../../../src/kit/sha256.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { token, yard } from './child-plan.ts'

const ways: readonly ConfinementWay[] = ['bubblewrap', 'setpriv', 'group']
const ours = () => processesOfRun(sha256(token))
const folders: string[] = []

afterEach(() => {
  for (const { pid } of ours()) process.kill(pid, 'SIGKILL')
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function stateOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.[0]
  } catch {
    return undefined
  }
}

/** Holds this thread until every process of the child sleeps for a while, or its program has run. */
function sleepsOrRan(hasRun: () => boolean): 'sleeps' | 'ran' | 'neither' {
  for (let quiet = 0, looks = 0; looks < 3_000; looks += 1, Bun.sleepSync(10)) {
    if (hasRun()) return 'ran'
    const states = ours().map(({ pid }) => stateOf(pid))
    quiet = states.length > 0 && states.every((state) => state === 'S') ? quiet + 1 : 0
    if (quiet === 10) return 'sleeps'
  }
  return 'neither'
}

describe.if(needs('bwrap', 'setpriv', 'setsid'))('a child', () => {
  test('writes nowhere but into its copy and its own folder', async () => {
    using place = yard()
    writeFileSync(join(place.workspace, 'mine.txt'), 'before')
    writeFileSync(join(place.copy, 'mine.txt'), 'before')
    const script = `echo after > ${place.workspace}/mine.txt; echo new > new.txt; echo own > "$HOME/own.txt"
      for f in /etc/x /usr/x /x; do echo bad 2>/dev/null > $f && echo "wrote $f"; done
      echo 'only in its own /tmp' > ${place.folder}/x; echo end`
    const child = await place.start(script, 'bubblewrap')
    expect(await child.ended).toEqual({ code: 0, stopped: false, leftovers: 0 })
    expect(place.output()).not.toContain('wrote')
    expect(place.output()).toContain('end')
    expect(readFileSync(join(place.workspace, 'mine.txt'), 'utf8')).toBe('before')
    expect(readFileSync(join(place.copy, 'mine.txt'), 'utf8')).toBe('after\n')
    expect(readFileSync(join(place.copy, 'new.txt'), 'utf8')).toBe('new\n')
    expect(readFileSync(join(place.home, 'own.txt'), 'utf8')).toBe('own\n')
    expect(existsSync(join(place.folder, 'x'))).toBe(false)
  })

  test('sees neither the home folder nor files that only their owner may read', async () => {
    using place = yard()
    const home = mkdtempSync(join(tmpdir(), 'braidclaw-user-'))
    folders.push(home)
    writeFileSync(join(home, 'key'), 'top secret')
    const child = await place.start(`cat ${home}/key /etc/shadow; ls ${home}; echo end`, 'bubblewrap', { userHome: home })
    await child.ended
    expect(place.output()).not.toContain('top secret')
    expect(place.output()).not.toContain('root:')
    expect(place.output()).toContain('end')
  })

  test.each(ways)('gets exactly the environment of its plan (%s)', async (way) => {
    using place = yard()
    await (await place.start('env | cut -d= -f1 | sort | tr "\\n" " "', way)).ended
    const names = place.output().trim().split(' ')
    expect(names.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name))).toEqual(['CONTROLPLANE_API_KEY', 'HOME', 'PATH'])
  })

  test.each(ways)('reads its standard input, which is no part of its arguments (%s)', async (way) => {
    using place = yard()
    await (await place.start('cat; tr "\\0" " " < /proc/self/cmdline', way, { stdin: '--flag $(touch x)\n' })).ended
    expect(place.output()).toStartWith('--flag $(touch x)\n')
    expect(place.output().split('\n')[1]).not.toContain('--flag')
    expect(readdirSync(place.copy)).toEqual([])
  })

  test.each(ways)('that forks away with setsid and a second fork is dead when the run is over (%s)', async (way) => {
    using place = yard()
    const child = await place.start('(setsid sh -c "(sleep 60 &) ; sleep 60" &) ; sleep 0.2; echo end', way)
    const { code, leftovers } = await child.ended
    expect(code).toBe(0)
    expect(place.output()).toContain('end')
    expect(ours()).toEqual([])
    if (way !== 'bubblewrap') expect(leftovers).toBeGreaterThan(0)
  })

  test.each(ways)('is asked to end, and may say something first (%s)', async (way) => {
    using place = yard()
    const child = await place.start('trap "echo bye; exit 7" TERM; echo ready; while :; do sleep 0.05; done', way)
    await until(() => place.output().includes('ready'))
    child.stop()
    expect(await child.ended).toMatchObject({ code: 7, stopped: true })
    expect(place.output()).toContain('bye')
  })

  test.each(ways)('that ignores the request is killed with all its processes (%s)', async (way) => {
    using place = yard()
    const child = await place.start('trap "" TERM; sleep 60 & echo ready; while :; do sleep 0.05; done', way, { termGraceMs: 200 })
    await until(() => place.output().includes('ready'))
    child.stop()
    expect(await child.ended).toMatchObject({ stopped: true })
    expect(ours()).toEqual([])
  })

  test('never runs its program when its process number could not be written', async () => {
    using place = yard()
    const records = {
      ...place.records,
      write: () => {
        throw new Error('disk full')
      },
    }
    await expect(place.start('echo ran', 'bubblewrap', { records })).rejects.toThrow('disk full')
    await until(() => ours().length === 0)
    expect(place.output()).toBe('')
  })

  test.each(ways)('waits for its process number to be on disk, however long that takes (%s)', async (way) => {
    using place = yard()
    const ran = join(place.copy, 'ran')
    const seen: string[] = []
    const write: typeof place.records.write = (record) => {
      seen.push(sleepsOrRan(() => existsSync(ran)))
      place.records.write(record)
    }
    const child = await place.start('touch ran', way, { records: { ...place.records, write } })
    expect((await child.ended).code).toBe(0)
    expect([seen, existsSync(ran)]).toEqual([['sleeps'], true])
  })
})

describe.if(needs('bwrap', 'setpriv', 'setsid'))('kill -9 of the worker', () => {
  test.each(ways)('ends its child (%s)', async (way) => {
    const { folder, holder } = await heldChild(way, 'sleep 60 & sleep 60')
    expect(ours().length).toBeGreaterThan(1)
    holder.kill('SIGKILL')
    await until(() => ours().length === 0)
    expect(readdirSync(join(folder, 'records'))).toEqual(['RUN-001.json'])
  })

  test('ends its child also in the first moments, when bubblewrap has not asked the kernel yet to do it', async () => {
    const bin = mkdtempSync(join(tmpdir(), 'braidclaw-bin-'))
    folders.push(bin)
    const forgetful = `for word do shift; [ "$word" = --die-with-parent ] || set -- "$@" "$word"; done; exec ${Bun.which('bwrap')} "$@"`
    writeFileSync(join(bin, 'bwrap'), `#!/bin/sh\n${forgetful}\n`, { mode: 0o755 })
    const { holder } = await heldChild('bubblewrap', 'sleep 60 & sleep 60', `${bin}:${process.env.PATH}`)
    holder.kill('SIGKILL')
    await until(() => ours().length === 0)
  })

  test('leaves what left the group to the next worker, which ends exactly that', async () => {
    const { folder, holder } = await heldChild('group', '(setsid sleep 60 &) ; sleep 60')
    const bystander = Bun.spawn(['sleep', '60'])
    // One of them is in a session of its own by now.
    await until(() => ours().filter(({ pid }) => isSleep(pid)).length === 2)
    holder.kill('SIGKILL')
    await holder.exited
    await until(() => ours().length === 1)
    expect(await openChildRecords(join(folder, 'records')).clear()).toEqual(['RUN-001'])
    expect(ours()).toEqual([])
    expect(markOf(bystander.pid)).toBeDefined()
    bystander.kill('SIGKILL')
    expect(readdirSync(join(folder, 'records'))).toEqual([])
  })

  test('a process number that belongs to another process by now is left alone', async () => {
    using place = yard()
    const bystander = Bun.spawn(['sleep', '60'])
    const dead = { pid: 4_000_000, started: '1' }
    place.records.write({ run_id: 'RUN-002', token_digest: sha256('other'), processes: [{ pid: bystander.pid, started: '1' }] })
    const path = join(place.folder, 'records', 'RUN-002.json')
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), worker: dead }))
    expect(await place.records.clear()).toEqual([])
    expect(markOf(bystander.pid)).toBeDefined()
    expect(existsSync(path)).toBe(false)
    bystander.kill('SIGKILL')
  })

  test('the child of a worker that lives is not touched by another worker', async () => {
    const { folder, holder } = await heldChild('bubblewrap', 'sleep 60')
    expect(await openChildRecords(join(folder, 'records')).clear()).toEqual([])
    expect(ours().length).toBeGreaterThan(0)
    holder.kill('SIGKILL')
    await until(() => ours().length === 0)
  })
})

function isSleep(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('sleep')
  } catch {
    return false
  }
}

async function heldChild(way: ConfinementWay, script: string, path = process.env.PATH) {
  const folder = mkdtempSync(join(tmpdir(), 'braidclaw-held-'))
  folders.push(folder)
  const holder = Bun.spawn([process.execPath, join(import.meta.dir, 'child-plan.ts'), folder, way, script], {
    env: { ...process.env, TOKEN_OF_THE_TEST: token, PATH: path },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const piece of holder.stdout) if (Buffer.from(piece).toString().includes('started')) break
  await until(() => ours().length > 1)
  return { folder, holder }
}
