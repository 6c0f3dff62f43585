/** Tests that the sandbox processes of a killed process of ours are ended, and no others. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { given } from '../../test/support/needs.ts'
import { confined, hasBubblewrap, place } from './fixture.ts'
import { commandOf, deadFolder, folderIn, namespace, runs, spawned, until, waitingAt } from './leftovers.fixture.ts'
import { clearLeftovers, markOption, sandboxMark } from './private-folder.ts'

const real = test.if(hasBubblewrap())

function started(pid: number | string): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19]
}

function cleared(state: string) {
  const said: unknown[] = []
  const ended = clearLeftovers(state, (...words) => void said.push(words))
  return { ended, said, folders: readdirSync(join(state, 'run')) }
}

describe('a bubblewrap of a dead owner', () => {
  real('is ended with its folder, also when only its inner process is left, and it is said', async () => {
    using at = place()
    const state = at.settings.stateHome
    using left = await waitingAt(folderIn(state, deadFolder()))
    const [outer = 0, inner = 0] = left.pids
    process.kill(outer, 'SIGKILL')
    await until(() => !runs(outer))
    expect(runs(inner)).toBe(true)
    expect(cleared(state)).toEqual({ ended: 1, said: [['warn', 'sandbox processes of a killed run ended', { count: 1 }]], folders: [] })
    await until(() => !runs(inner))
    expect(runs(inner)).toBe(false)
    expect(cleared(state)).toEqual({ ended: 0, said: [], folders: [] })
  })

  real('is ended by the next sandbox of that home', async () => {
    using box = await confined()
    using left = await waitingAt(folderIn(box.settings.stateHome, deadFolder()))
    using again = await confined({ stateHome: box.settings.stateHome })
    await until(() => !left.pids.some(runs))
    expect(left.pids.map(runs)).toEqual([false, false])
    expect(await again.run('echo ran')).toMatchObject({ code: 0, stdout: 'ran\n' })
    expect(await box.run('echo ran')).toMatchObject({ code: 0, stdout: 'ran\n' })
  })
})

describe('nothing else is touched', () => {
  const mine = `sandbox-${namespace()}-${process.pid}-${started('self')}-Abc123`

  real.each([
    ['of a living owner', mine, [mine]],
    [
      'of another PID namespace, where numbers mean other processes',
      deadFolder().replace(`${namespace()}`, '1'),
      [deadFolder().replace(`${namespace()}`, '1')],
    ],
    ['in a folder whose name is not ours', 'sandbox-crashed', ['sandbox-crashed']],
  ])('a bubblewrap %s', async (_, name, folders) => {
    using at = place()
    using other = await waitingAt(folderIn(at.settings.stateHome, name))
    expect(cleared(at.settings.stateHome)).toEqual({ ended: 0, said: [], folders })
    await Bun.sleep(20)
    expect(other.pids.map(runs)).toEqual([true, true])
  })

  real('a bubblewrap of another home, one that only names the mark, and another program with the very words', async () => {
    using at = place()
    using elsewhere = place()
    const mark = sandboxMark(folderIn(at.settings.stateHome, deadFolder()))
    using other = await waitingAt(folderIn(elsewhere.settings.stateHome, deadFolder()))
    using naming = spawned('bwrap', '--ro-bind', '/', '/', '--', '/bin/sh', '-c', 'sleep 60; :', mark)
    using shell = spawned('/bin/sh', '-c', 'sleep 60; :', 'sh', markOption, mark)
    await until(() => commandOf(naming.pids[0]).includes('bwrap') && commandOf(shell.pids[0]).includes(mark))
    expect(cleared(at.settings.stateHome)).toMatchObject({ ended: 0, said: [] })
    await Bun.sleep(20)
    expect([...other.pids, ...naming.pids, ...shell.pids].map(runs)).toEqual([true, true, true, true])
  })

  test.if(hasBubblewrap() && given(process.getuid?.() === 0, 'root'))('a bubblewrap of another user', async () => {
    using at = place()
    const folder = folderIn(at.settings.stateHome, deadFolder())
    for (const path of [at.root, at.settings.stateHome, join(at.settings.stateHome, 'run'), folder]) chmodSync(path, 0o755)
    using other = await waitingAt(folder, ['setpriv', '--reuid', '65534', '--clear-groups'])
    expect(cleared(at.settings.stateHome)).toMatchObject({ ended: 0 })
    await Bun.sleep(20)
    expect(other.pids.map(runs)).toEqual([true, true])
  })
})
