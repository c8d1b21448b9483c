# Sourced by scripts that need packages of Debian, some of them for another architecture.
#
# It needs `what`, the subject of the messages, and `base`, a folder for downloads. Where something
# is missing and may not be installed, it says SKIP and why, and ends the script.

skip() {
    printf 'SKIP: %s: %s\n' "$what" "$*"
    exit 0
}

# allow_installing ARGUMENT...: with --install, or CI=true, missing packages are installed.
allow_installing() {
    may_install=false
    if [ "${1:-}" = --install ] || [ "${CI:-}" = true ]; then
        may_install=true
    fi
}

# install_packages WHAT PACKAGE...: WHAT is missing without them.
install_packages() {
    local missing="$1"
    shift
    if ! $may_install; then
        skip "there is no $missing; to install it (Debian, as root): $0 --install"
    elif ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
        skip "there is no $missing, and no apt-get to install $*"
    elif [ "$(id -u)" != 0 ]; then
        skip "there is no $missing; as root, run: apt-get install $*"
    fi
    apt-get -qq update >"$base/apt.log" 2>&1 ||
        skip "there is no $missing, and apt-get update failed, see $base/apt.log"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" \
        >"$base/apt.log" 2>&1 ||
        skip "there is no $missing, and apt-get install $* failed, see $base/apt.log"
}

# foreign ARCHITECTURE PROGRAM ARGUMENT...: apt-get or apt-cache for another architecture, which
# dpkg does not get to know. Its lists and downloads are below `base`.
foreign() {
    local architecture="$1" program="$2"
    local state="$base/apt-$architecture"
    shift 2
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    "$program" -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
        -o APT::Sandbox::User=root -o Dir::State::Lists="$state/lists" \
        -o Dir::Cache="$state/cache" -o Dir::State::status=/dev/null "$@"
}

# download_packages ARCHITECTURE FOLDER PACKAGE...: unpacks them into FOLDER. `foreign … update`
# comes first.
download_packages() {
    local architecture="$1" folder="$2"
    local packages="$base/apt-$architecture/packages"
    shift 2
    rm -rf "$packages" "$folder"
    mkdir -p "$packages" "$folder"
    (cd "$packages" && foreign "$architecture" apt-get -qq download "$@") || return 1
    local package
    for package in "$packages"/*.deb; do
        dpkg -x "$package" "$folder" || return 1
    done
    rm -rf "$packages"
}
