/**
 * Lists the files that a person's everyday tools run or obey without being asked, wherever they lie: what a build, a test run, an install
 * or another agent picks up by its name. Commands may change them, but not without a question. Names that programs obey even without
 * such a tool are in targets/protected-names.ts and never change.
 */

/** Maps each reason to names in lower case. `*` stands for any characters; a name with a final slash is a folder with all below it. */
export const runUnaskedByReason: { readonly [reason: string]: string } = {
  'build recipes':
    'makefile gnumakefile bsdmakefile *.mk *.mak justfile .justfile *.just rakefile *.rake taskfile.yml taskfile.yaml taskfile.dist.yml sconstruct sconscript ' +
    'wscript cmakelists.txt *.cmake cmakepresets.json meson.build meson_options.txt configure configure.ac configure.in *.m4 *.am *.in build.ninja *.ninja ' +
    'build workspace build.bazel workspace.bazel module.bazel *.bzl .bazelrc buck tundra.lua xmake.lua premake5.lua magefile.go earthfile dodo.py tasks.py fabfile.py',
  'packages of Python':
    'setup.py setup.cfg conftest.py pytest.ini .pytest.ini tox.ini noxfile.py *.pth sitecustomize.py usercustomize.py *.pyc *.pyo __pycache__/ site-packages/ ' +
    'venv/ .venv/ pyvenv.cfg pipfile uv.toml hatch.toml hatch_build.py pdm_build.py .coveragerc manage.py requirements*.txt .pylintrc pylintrc mypy.ini .mypy.ini .flake8',
  'packages of JavaScript':
    'node_modules/ .pnp.cjs .pnp.loader.mjs bunfig.toml .yarn/ deno.json deno.jsonc nx.json turbo.json lerna.json rush.json pnpm-workspace.yaml .swcrc tsconfig*.json ' +
    '.babelrc .babelrc.* babel.config.* webpack.config.* webpack.*.js vite.config.* vitest.config.* vitest.workspace.* jest.config.* jest.setup.* jest.preset.* ' +
    'rollup.config.* esbuild.config.* esbuild.js rspack.config.* tsup.config.* tsdown.config.* next.config.* nuxt.config.* svelte.config.* astro.config.* ' +
    'remix.config.* vue.config.* angular.json ember-cli-build.js gatsby-*.js metro.config.* playwright.config.* cypress.config.* wdio.conf.* karma.conf.* .mocharc.* ' +
    'ava.config.* eslint.config.* .eslintrc .eslintrc.* prettier.config.* .prettierrc.* stylelint.config.* .stylelintrc.* commitlint.config.* .commitlintrc.* ' +
    'lint-staged.config.* .lintstagedrc .lintstagedrc.* .simple-git-hooks.* release.config.* .releaserc .releaserc.* tailwind.config.* postcss.config.* .postcssrc.* ' +
    'uno.config.* windi.config.* drizzle.config.* prisma.config.* knexfile.* gulpfile.* gruntfile.* snowpack.config.* parcel.config.* .parcelrc craco.config.* ' +
    '.storybook/ plopfile.* hardhat.config.* truffle-config.js webdriverio.conf.*',
  'packages of other languages':
    'build.rs rust-toolchain rust-toolchain.toml clippy.toml rustfmt.toml build.gradle build.gradle.kts settings.gradle settings.gradle.kts init.gradle gradlew ' +
    'gradlew.bat gradle/ gradle.properties mvnw mvnw.cmd .mvn/ pom.xml build.xml build.sbt build.properties *.sbt build.sc mill build.clj project.clj deps.edn ' +
    'gemfile *.gemspec .rspec .rubocop.yml podfile fastfile appfile package.swift mix.exs rebar.config rebar.config.script go.mod go.work composer.json ' +
    'cpanfile makefile.pl build.pl dune dune-project *.cabal stack.yaml setup.hs build.zig build.zig.zon *.csproj *.fsproj *.vbproj *.props *.targets *.sln ' +
    'directory.build.* nuget.config global.json flake.nix default.nix shell.nix *.nimble *.rockspec',
  containers:
    'dockerfile dockerfile.* *.dockerfile containerfile docker-compose*.yml docker-compose*.yaml compose*.yml compose*.yaml vagrantfile *.tf *.hcl skaffold.yaml tiltfile',
  'services and schedules':
    'procfile procfile.* *.service *.timer *.socket crontab supervisord.conf pm2.config.* ecosystem.config.* app.json fly.toml vercel.json netlify.toml wrangler.toml wrangler.json serverless.*',
  'code checks':
    '.pre-commit-hooks.yaml .editorconfig-checker.json .golangci.* .semgrep.yml sonar-project.properties codecov.yml renovate.json dependabot.yml .github/ .gitattributes .gitlab/',
  'instructions for agents':
    'agents.md agents.override.md claude.md claude.local.md gemini.md qwen.md copilot-instructions.md skill.md .goosehints ' +
    '.rules .aider* conventions.md soul.md',
  'libraries that programs load':
    '*.so *.so.* *.dylib *.dll *.node *.pyd *.jar *.class *.wasm *.exe *.bat *.cmd *.ps1 *.desktop *.command *.app',
}

const names = Object.values(runUnaskedByReason).flatMap((each) => each.split(' '))
const exact: ReadonlySet<string> = new Set(names.filter((name) => !/[*/]/.test(name)))
const folders: ReadonlySet<string> = new Set(names.filter((name) => /^[^*/]+\/$/.test(name)).map((name) => name.slice(0, -1)))
const patterns = new RegExp(
  `^(?:${names
    .filter((name) => name.includes('*'))
    .map(toPattern)
    .join('|')})$`,
)

/** Every name and pattern of the list. */
export const runUnaskedNames: readonly string[] = names

/** Takes a path as `spelt` returns it. */
export function isRunUnasked(path: string): boolean {
  const parts = path.split('/')
  const name = parts.at(-1) ?? ''
  return exact.has(name) || patterns.test(name) || parts.some((part) => folders.has(part))
}

function toPattern(name: string): string {
  return name.replaceAll('.', '\\.').replaceAll('*', '.*')
}
