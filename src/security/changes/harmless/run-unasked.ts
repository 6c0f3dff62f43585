/**
 * Lists the names that always ask: what a person's everyday tools run or obey without being asked, wherever it lies. Commands may change
 * such files, but not without a question. Names that programs obey even without such a tool are in targets/protected.ts and never
 * change. What no list names is judged by may-pass.ts.
 */

import { spelt } from '../../targets/protected.ts'

/**
 * Maps each reason to names in lower case. `*` stands for any characters of a name; a final slash means a folder with all below it, a slash
 * inside means the end of a path. `.dist`, `.local` and `.yaml` count as the same name without them, and with `.yml`.
 */
export const runUnaskedByReason: { readonly [reason: string]: string } = {
  'dot files and configuration of any tool': '.* .*/ *.config *.config.* *.conf.*',
  'build recipes':
    '*.mk *.mak *.just *.rake *.inc taskfile.yml cmakelists.txt *.cmake cmakepresets.json meson.build meson_options.txt configure.ac *.m4 *.am *.in *.ninja ' +
    'build.bazel workspace.bazel module.bazel *.bzl xmake.lua premake5.lua magefile.go dodo.py tasks.py fabfile.py autogen.sh *.hxml',
  'packages of Python':
    'setup.py setup.cfg conftest.py pytest.ini tox.ini noxfile.py *.pth sitecustomize.py usercustomize.py *.pyc *.pyo __pycache__/ site-packages/ ' +
    'venv/ pyvenv.cfg uv.toml hatch.toml hatch_build.py pdm_build.py manage.py *requirements*.txt constraints*.txt runtime.txt mypy.ini doc*/conf.py ' +
    'source/conf.py alembic/env.py migrations/env.py celeryconfig.py local_settings.py pip.py venv.py pytest.py conanfile.py toxfile.py locustfile.py pavement.py jupyter_*.py ipython_config.py',
  'packages of JavaScript':
    'node_modules/ bower_components/ bunfig.toml deno.json deno.jsonc nx.json turbo.json lerna.json rush.json pnpm-workspace.yml tsconfig*.json jsconfig*.json ' +
    'webpack.*.js vitest.workspace.* jest.preset.* *.setup.* setuptests.* esbuild.js angular.json ember-cli-build.js wallaby.js testem.js gatsby-*.js cypress/ ' +
    'knexfile.* gulpfile.* gruntfile.* jakefile.* plopfile.* dangerfile.* truffle-config.js codegen.* knip.* nodemon.json project.json jasmine.json',
  'packages of other languages':
    'vendor/ build.rs rust-toolchain.toml clippy.toml rustfmt.toml *.gradle *.gradle.kts gradle/ gradle.properties buildsrc/ pom.xml build.xml nbproject/ *.sbt build.sc ' +
    'build.properties project/*.scala build.clj project.clj deps.edn user.clj* data_readers.clj* gems.rb *.gemspec *.ru robofile.php rector.php ecs.php phinx.php deploy.php package*.swift project.swift workspace.swift tuist/ mix.exs ' +
    'config/*.exs *.script go.mod go.work composer.json makefile.pl build.pl *.cabal stack.yml setup.*hs shakefile.hs lakefile.lean build.zig *.zon *.nimble *.nims nim.cfg ' +
    '*.csproj *.fsproj *.vbproj *.vcxproj *.proj *.props *.targets *.sln *.slnx directory.build.* global.json *.nix *.rockspec _targets.r renv/ deps/build.jl hook/build.dart ' +
    '*.uproject *.godot *.ipkg',
  containers:
    'dockerfile.* *.dockerfile containerfile.* docker-compose*.yml compose*.yml *.tf *.tfvars *.hcl skaffold.yml devcontainer.json',
  'services and schedules':
    'procfile.* *.service *.timer *.socket supervisord.conf app.json fly.toml vercel.json netlify.toml wrangler.toml wrangler.json serverless.*',
  'code checks': 'sonar-project.properties codecov.yml renovate.json dependabot.yml',
  'instructions for agents':
    'agent.md agents.md agents.*.md claude.md gemini.md qwen.md warp.md copilot-instructions.md skill.md conventions.md soul.md llms*.txt',
  'libraries and programs':
    '*.so *.so.* *.dylib *.dll *.node *.pyd *.jar *.class *.beam *.phar *.wasm *.exe *.bat *.cmd *.ps1 *.desktop *.command *.app *.whl *.gem *.vsix *.zwc *.vim',
}

/** Lists files that a person never sees and no build mentions; other programs find them by their names. */
const hiddenReasons = ['dot files and configuration of any tool', 'code checks', 'instructions for agents'] as const

/** Every name and pattern of the list. */
export const runUnaskedNames: readonly string[] = Object.values(runUnaskedByReason).flatMap((each) => each.split(' '))

const toPattern = (name: string) => name.replaceAll('.', '\\.').replaceAll('*', '[^/]*')
const patternOf = (names: readonly string[]) =>
  new RegExp(`(?:^|/)(?:${names.map((name) => toPattern(name) + (name.endsWith('/') ? '' : '$')).join('|')})`)
const listed = patternOf(runUnaskedNames)
const hidden = patternOf(hiddenReasons.flatMap((reason) => (runUnaskedByReason[reason] ?? '').split(' ')))
/** Files that only leave files out, the dependencies of a project, whose settings count for themselves, and what is judged as a part of a repository. */
const ofNoMatter = /(?:^|\/)(?:\.(?:\w+ignore|gitkeep|keep)$|(?:node_modules|site-packages|bower_components|vendor|\.?venv|\.git)\/)/

/** Names without a suffix of documents that no program obeys. Every other name without a suffix may be a recipe or a program. */
const documents = /^(?:readme|licen[cs]e|copying|notice|authors|contributors|maintainers|changelog|changes|history|news|todo|version)$/

/** Takes any relative path; one of a folder ends with a slash. */
export function isRunUnasked(path: string): boolean {
  const plain = spelt(path)
  const name = plain.slice(plain.lastIndexOf('/') + 1)
  return (name !== '' && !name.includes('.') && !documents.test(name)) || matches(listed, plain)
}

/** Tells whether a file asks even in `full`: other programs obey it, and it is not part of what a person builds or starts. */
export function isHiddenSetting(path: string): boolean {
  const plain = spelt(path)
  return matches(hidden, plain) && !ofNoMatter.test(plain)
}

function matches(pattern: RegExp, plain: string): boolean {
  const usual = plain.replace(/\.(?:dist|local)(?=\.|$)/g, '').replace(/\.yaml$/, '.yml')
  return pattern.test(plain) || (usual !== plain && pattern.test(usual))
}
