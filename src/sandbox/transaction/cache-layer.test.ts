import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import type { Change } from '../../runtime/changes.ts'
import { confined, type Running } from '../fixture.ts'
import { openLibc } from '../libc.ts'
import { createCacheLayer } from './cache-layer.ts'
import { bytePath } from './layer-files.ts'

const real = test.if(needs('bwrap'))
const python = test.if(needs('bwrap', 'python3'))

const paths = (changes: readonly Change[]) => changes.map(({ path }) => path)

async function change(box: Running, script: string) {
  const ran = await box.change(script)
  const changes = await ran.view.changes()
  const caches = await ran.view.caches()
  ran.view.drop()
  return { ...ran, changes: paths(changes), caches }
}

describe('a cache folder', () => {
  real('that a command fills is no change, never reaches the workspace, and is there for the next command', async () => {
    using box = await confined()
    const { changes, caches } = await change(box, 'mkdir -p src/__pycache__ && echo 1 > src/__pycache__/a.pyc && echo code > src/a.py')
    expect([changes, caches]).toEqual([['src', 'src/a.py'], ['src/__pycache__']])
    expect(readdirSync(box.workspace)).toEqual([])
    mkdirSync(join(box.workspace, 'src'))
    expect((await change(box, 'cat src/__pycache__/a.pyc')).stdout).toBe('1\n')
    await change(box, 'echo 2 > src/__pycache__/b.pyc; rm src/__pycache__/a.pyc')
    expect((await change(box, 'ls src/__pycache__')).stdout).toBe('b.pyc\n')
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

real('the layer is emptied when it has more files than allowed', async () => {
  using box = await confined()
  const folder = join(box.root, 'caches')
  const limits = { files: 10, bytes: 1_000 }
  const layer = createCacheLayer({ folder, workspace: box.workspace, libc: openLibc(), limits })
  const fill = (name: string, count: number) => {
    const up = join(box.root, name)
    mkdirSync(join(up, '.tox'), { recursive: true })
    for (let at = 0; at < count; at++) writeFileSync(join(up, '.tox', `${name}-${at}`), '')
    layer.keep(bytePath(up), ['.tox'])
  }
  fill('few', 5)
  await Bun.sleep(50)
  expect(readdirSync(folder)).toEqual(['.tox'])
  fill('many', 8)
  for (let tries = 0; tries < 100 && readdirSync(folder).length > 0; tries++) await Bun.sleep(10)
  expect(readdirSync(folder)).toEqual([])
})
