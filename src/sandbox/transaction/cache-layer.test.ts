import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { sha256 } from '../../kit/sha256.ts'
import type { Change } from '../../runtime/changes.ts'
import { confined, place, type Running } from '../fixture.ts'
import { openLibc } from '../libc.ts'
import { createCaches, keepCaches } from './cache-layer.ts'

const real = test.if(needs('bwrap'))
const python = test.if(needs('bwrap', 'python3'))

const paths = (changes: readonly Change[]) => changes.map(({ path }) => path)

/** Runs a command whose changes are applied by nobody, and whose caches are kept for the same owner. */
async function change(box: Running, script: string, more: Parameters<Running['change']>[1] & { readonly keep?: boolean } = {}) {
  const ran = await box.change(script, more)
  const changes = await ran.view.changes()
  const caches = await ran.view.caches()
  if (more.keep !== false) await ran.view.keepCaches()
  ran.view.drop()
  return { ...ran, changes: paths(changes), caches }
}

describe('a cache folder', () => {
  real('that a command fills is no change, never reaches the workspace, and is there for the next command', async () => {
    using box = await confined()
    const { changes, caches } = await change(box, 'mkdir -p src/__pycache__ && echo 1 > src/__pycache__/a.nbi && echo code > src/a.py')
    expect([changes, caches]).toEqual([['src', 'src/a.py'], ['src/__pycache__']])
    expect(readdirSync(box.workspace)).toEqual([])
    mkdirSync(join(box.workspace, 'src'))
    expect((await change(box, 'cat src/__pycache__/a.nbi')).stdout).toBe('1\n')
    await change(box, 'echo 2 > src/__pycache__/b.nbi; rm src/__pycache__/a.nbi')
    expect((await change(box, 'ls src/__pycache__')).stdout).toBe('b.nbi\n')
    expect(readdirSync(join(box.workspace, 'src'))).toEqual([])
  })

  real('that exists in the workspace stays as it is, and commands see it under what they write', async () => {
    using box = await confined()
    mkdirSync(join(box.workspace, '.pytest_cache'))
    writeFileSync(join(box.workspace, '.pytest_cache/mine'), 'mine')
    const { changes } = await change(box, 'echo forged > .pytest_cache/mine; echo new > .pytest_cache/new')
    expect(changes).toEqual([])
    expect(readFileSync(join(box.workspace, '.pytest_cache/mine'), 'utf8')).toBe('mine')
    expect((await change(box, 'cat .pytest_cache/*')).stdout).toBe('forged\nnew\n')
    await change(box, 'rm -r .pytest_cache')
    expect((await change(box, 'ls -A')).stdout).toBe('')
    expect(readdirSync(join(box.workspace, '.pytest_cache'))).toEqual(['mine'])
  })

  real('disappears with the folder that it is in, and never hides a file', async () => {
    using box = await confined()
    mkdirSync(join(box.workspace, 'src'))
    await change(box, 'mkdir src/__pycache__ .tox; echo 1 > src/__pycache__/a.pyc')
    rmSync(join(box.workspace, 'src'), { recursive: true })
    writeFileSync(join(box.workspace, '.tox'), 'a file')
    expect((await change(box, 'ls -A; cat .tox')).stdout).toBe('.tox\na file')
    writeFileSync(join(box.workspace, 'src'), 'a file')
    expect((await change(box, 'cat src')).stdout).toBe('a file')
  })

  real('is seen by commands that may only read, which can write nowhere and make nothing in the workspace', async () => {
    using box = await confined()
    await change(box, 'mkdir __pycache__; echo 1 > __pycache__/a; echo x > made')
    const names: string[] = []
    const watcher = setInterval(() => names.push(...readdirSync(box.workspace)), 1)
    const { ended, stdout, stderr } = await box.run('ls -A . __pycache__; echo x > new; echo x > __pycache__/b; sleep 0.05', {
      readOnly: true,
    })
    clearInterval(watcher)
    expect(stdout).toBe('.:\n__pycache__\n\n__pycache__:\na\n')
    expect(stderr.match(/Read-only file system/g)).toHaveLength(2)
    expect(ended).toEqual({ ok: true, code: 0, leftBehind: false })
    expect(names).toEqual([])
  })

  real('with a common name is one only beside the file of its build tool', async () => {
    using box = await confined()
    expect((await change(box, 'mkdir target; echo x > target/x')).changes).toEqual(['target', 'target/x'])
    expect((await change(box, 'mkdir target; echo x > target/x; echo > Cargo.toml')).changes).toEqual(['Cargo.toml'])
    mkdirSync(join(box.workspace, 'app/node_modules'), { recursive: true })
    expect((await change(box, 'mkdir app/.cache app/node_modules/.cache')).changes).toEqual(['app/.cache'])
  })

  real('that was there goes with a folder that a command removes', async () => {
    using box = await confined()
    mkdirSync(join(box.workspace, 'src/__pycache__'), { recursive: true })
    writeFileSync(join(box.workspace, 'src/__pycache__/a.pyc'), '1')
    expect((await change(box, 'rm -r src')).changes).toEqual(['src', 'src/__pycache__', 'src/__pycache__/a.pyc'])
    expect((await change(box, 'rm -r src; mkdir src')).changes).toEqual([])
  })
})

python('a forged compiled file does not run in the python of the user, and runs for the next command only', async () => {
  using box = await confined()
  writeFileSync(join(box.workspace, 'tool.py'), 'print("honest")\n')
  const forge = `import py_compile, os, sys
open('/tmp/evil.py', 'w').write('print("forged")\\n')
stat = os.stat('tool.py')
import importlib.util, marshal, struct, importlib._bootstrap_external as b
code = compile('print("forged")', 'tool.py', 'exec')
os.makedirs('__pycache__', exist_ok=True)
open(importlib.util.cache_from_source('tool.py'), 'wb').write(b._code_to_timestamp_pyc(code, int(stat.st_mtime), stat.st_size))`
  expect(await change(box, `python3 - <<'EOF'\n${forge}\nEOF`)).toMatchObject({ code: 0, changes: [], caches: ['__pycache__'] })
  expect((await change(box, 'python3 -c "import tool"')).stdout).toBe('forged\n')
  const outside = Bun.spawnSync(['python3', '-B', '-c', 'import tool'], { cwd: box.workspace })
  expect(outside.stdout.toString()).toBe('honest\n')
  expect(existsSync(join(box.workspace, '__pycache__'))).toBe(false)
})

describe('what waits for a decision', () => {
  real('acts for nobody when it is dropped, and for its owner alone when it is kept', async () => {
    using box = await confined()
    const owner = (conversation: string, terms = 'supervised') => ({ caches: { conversation, terms } })
    const fill = 'mkdir -p .mypy_cache node_modules/.cache; echo evil > .mypy_cache/x; echo evil > node_modules/.cache/x'
    const seen = async (caches: ReturnType<typeof owner>) => {
      const { stdout } = await change(box, 'cat .mypy_cache/x', { ...caches, keep: false })
      const reading = await box.run('cat .mypy_cache/x', { readOnly: true, ...caches })
      expect(reading.stdout).toBe(stdout)
      return stdout
    }
    mkdirSync(join(box.workspace, 'node_modules'))
    await change(box, fill, { ...owner('a'), keep: false })
    expect(await seen(owner('a'))).toBe('')
    await change(box, fill, owner('a'))
    expect(await seen(owner('a'))).toBe('evil\n')
    for (const other of [owner('b'), owner('a', 'readonly'), owner('a', 'supervised, with a host')]) expect(await seen(other)).toBe('')
  })

  real('is taken over by later conversations with the same terms once its changes are applied, without marks', async () => {
    using box = await confined()
    const cacheOf = async (conversation: string, terms: string) =>
      (await change(box, 'cat .tox/*', { caches: { conversation, terms }, keep: false })).stdout
    mkdirSync(join(box.workspace, '.tox'))
    for (const name of ['a', 'b']) writeFileSync(join(box.workspace, '.tox', name), `${name}\n`)
    const ran = await box.change('rm .tox/a; echo new > .tox/new', { caches: { conversation: 'a', terms: 't' } })
    await ran.view.changes()
    await keepCaches(ran.view.folder, true)
    ran.view.drop()
    expect(await cacheOf('a', 't')).toBe('b\nnew\n')
    expect(await cacheOf('b', 't')).toBe('a\nb\nnew\n')
    expect(await cacheOf('c', 'other')).toBe('a\nb\n')
    await change(box, 'echo mine > .tox/new', { caches: { conversation: 'b', terms: 't' } })
    expect(await cacheOf('a', 't')).toBe('b\nnew\n')
  })

  real('cannot be read or moved for a moment: folders without permissions are kept all the same', async () => {
    using box = await confined()
    await change(box, 'mkdir -p .tox/shut; echo x > .tox/shut/x; chmod 0 .tox/shut .tox')
    expect((await change(box, 'chmod 700 .tox .tox/shut 2>/dev/null; cat .tox/shut/x')).stdout).toBe('x\n')
  })

  real('in the one layer of an earlier version is thrown away', async () => {
    using ground = place()
    const old = join(ground.root, 'state/caches', sha256(ground.workspace).slice(0, 16), '.tox')
    mkdirSync(old, { recursive: true })
    writeFileSync(join(old, 'x'), 'old')
    using box = await confined({ workspace: ground.workspace, stateHome: ground.settings.stateHome })
    expect((await change(box, 'cat .tox/x', { cwd: ground.workspace })).stdout).toBe('')
    expect(existsSync(old)).toBe(false)
  })
})

describe('a compiled file of python', () => {
  python('is kept only when python checks it: by a hash, or by the time and size that its source has', async () => {
    using box = await confined()
    const stamp = 'b._code_to_timestamp_pyc(code, int(stat.st_mtime)'
    const kinds = {
      unchecked: 'b._code_to_hash_pyc(code, hash, False)',
      checked: 'b._code_to_hash_pyc(code, hash, True)',
      same: `${stamp}, stat.st_size)`,
      time: `${stamp} + 1, stat.st_size)`,
      size: `${stamp}, stat.st_size + 1)`,
      undefined: 'b._code_to_hash_pyc(code, hash, False)[:4] + bytes([2, 0, 0, 0]) + bytes(12)',
      half: "b'x' * 15",
    }
    const forge = Object.entries(kinds).map(
      ([name, data]) => `stat = os.stat('${name}.py')
hash = u.source_hash(open('${name}.py', 'rb').read())
open(u.cache_from_source('${name}.py'), 'wb').write(${data})`,
    )
    for (const name of Object.keys(kinds)) writeFileSync(join(box.workspace, `${name}.py`), 'print("honest")\n')
    const start =
      "import importlib._bootstrap_external as b, importlib.util as u, os\nos.mkdir('__pycache__')\ncode = compile('1', 'x', 'exec')\n"
    expect((await change(box, `python3 -B - <<'EOF'\n${start}${forge.join('\n')}\nEOF`)).code).toBe(0)
    const { stdout } = await change(box, 'ls __pycache__', { keep: false })
    expect(stdout.split('\n').map((name) => name.split('.')[0])).toEqual(['checked', 'same', ''])
  })

  python('that is a link, lies under another name, or has no source is not kept; one of an environment with its sources is', async () => {
    using box = await confined()
    const script = `mkdir -p __pycache__ .tox/lib; printf 'x=1\\n' > .tox/lib/m.py; cd .tox/lib; python3 -c 'import m'; cd ../..
cp .tox/lib/__pycache__/m.*.pyc __pycache__/n.pyc; cp .tox/lib/__pycache__/m.*.pyc __pycache__/gone.cpython-311.pyc
cp .tox/lib/__pycache__/m.*.pyc __pycache__/data; ln -s data __pycache__/n.cpython-311.pyc; touch n.py; cp __pycache__/data .tox/lib/o.pyc
python3 -c "open('__pycache__/checked-by-its-hash', 'wb').write(bytes(4) + bytes([3]) + bytes(20))"; ln -s checked-by-its-hash __pycache__/l.cpython-311.pyc`
    await change(box, script)
    expect((await change(box, 'ls __pycache__; ls .tox/lib/*', { keep: false })).stdout.replaceAll(/cpython-\d+/g, 'tag')).toBe(
      'checked-by-its-hash\ndata\n.tox/lib/m.py\n\n.tox/lib/__pycache__:\nm.tag.pyc\n',
    )
  })
})

real('the layer is emptied when it has more files than allowed', async () => {
  using box = await confined()
  const folder = join(box.root, 'layers')
  const layer = createCaches({ folder, workspace: box.workspace, libc: openLibc() })()
  const fill = async (name: string, count: number) => {
    const from = join(box.root, name)
    mkdirSync(join(from, 'up/.tox'), { recursive: true })
    for (let at = 0; at < count; at++) writeFileSync(join(from, 'up/.tox', `${name}-${at}`), '')
    layer.setAside(from, ['.tox'])
    await keepCaches(from, false, { files: 10, bytes: 1_000 })
  }
  await fill('few', 5)
  await Bun.sleep(50)
  expect(readdirSync(layer.folder)).toEqual(['.tox'])
  await fill('many', 8)
  for (let tries = 0; tries < 100 && readdirSync(layer.folder).length > 0; tries++) await Bun.sleep(10)
  expect(readdirSync(layer.folder)).toEqual([])
})
