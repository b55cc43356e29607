# make install / uninstall, with PREFIX, LIBDIR, MANDIR, BASHDIR, DOCDIR and DESTDIR.
.PHONY: install uninstall

INSTALL ?= install
DOCDIR  ?= $(PREFIX)/share/doc/numaslab
LIBRARY := $(BUILD)/libnumaslab.so
PAGES    = $(wildcard tools/man/*.1 tools/man/*.5) $(BUILD)/man/libnumaslab.7
D_LIB    = $(DESTDIR)$(LIBDIR)
page_dir = $(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(1)))

install: all ## install under PREFIX (/usr/local), or below DESTDIR for a package
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(D_LIB)/pkgconfig $(DESTDIR)$(BASHDIR)
	$(INSTALL) -m 755 $(BUILD)/numaslab $(DESTDIR)$(PREFIX)/bin/numaslab
	$(INSTALL) -m 644 $(LIBRARY) $(D_LIB)/libnumaslab.so.$(VERSION)
	soname=$$(readelf -d $(LIBRARY) | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'); \
	for link in libnumaslab.so $$soname; do ln -sf libnumaslab.so.$(VERSION) $(D_LIB)/$$link; done
	$(INSTALL) -m 644 preload/numaslab.h $(DESTDIR)$(PREFIX)/include/numaslab.h
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		tools/numaslab.pc.in >$(D_LIB)/pkgconfig/numaslab.pc
	$(INSTALL) -m 644 tools/completion.bash $(DESTDIR)$(BASHDIR)/numaslab
	$(INSTALL) -D -m 644 README.md $(DESTDIR)$(DOCDIR)/README.md
	$(INSTALL) -D -m 644 preload/examples/nodes.c $(DESTDIR)$(DOCDIR)/examples/nodes.c
	$(foreach p,$(PAGES),$(INSTALL) -D -m 644 $(p) $(call page_dir,$(p))/$(notdir $(p)) &&) true

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(PREFIX)/bin/numaslab $(DESTDIR)$(PREFIX)/include/numaslab.h
	rm -f $(D_LIB)/libnumaslab.so $(D_LIB)/libnumaslab.so.* $(D_LIB)/pkgconfig/numaslab.pc
	rm -f $(DESTDIR)$(BASHDIR)/numaslab
	rm -f $(DESTDIR)$(DOCDIR)/README.md $(DESTDIR)$(DOCDIR)/examples/nodes.c
	-rmdir $(DESTDIR)$(DOCDIR)/examples $(DESTDIR)$(DOCDIR) 2>/dev/null
	rm -f $(foreach p,$(PAGES),$(call page_dir,$(p))/$(notdir $(p)))
